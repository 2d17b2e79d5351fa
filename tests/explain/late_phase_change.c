// explain: variable=field line=15 touched=18 fix=next-touch effect policy=next-touch:at=request
// As phase_change.c, but the change comes long after the rounds that explain simulates at first.
#include <stdio.h>
#include <stdlib.h>
#ifdef FIXED
#define HN_HEADER_ONLY
#include <homenode.h>
#endif

// So large that a round passes the caches, and so many rounds that the first ones are enough.
enum { COUNT = 1 << 19, BLOCKS = 64, ROUNDS = 160, CHANGE = 100 };

int main(void) {
    const long each = COUNT / BLOCKS;
    double *field = malloc(sizeof(double) * COUNT);
    if (!field) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < COUNT; i++) field[i] = i;
    for (int round = 0; round < ROUNDS; round++) {
#ifdef FIXED
        if (round == CHANGE) hn_next_touch(field, sizeof(double) * COUNT);
#endif
#pragma omp parallel for schedule(static)
        for (long b = 0; b < BLOCKS; b++) {
            const long block = round < CHANGE ? b : BLOCKS - 1 - b;
            for (long i = block * each; i < (block + 1) * each; i++) field[i] = 0.5 * field[i] + round;
        }
    }
    printf("%g\n", field[77]);
    return 0;
}
