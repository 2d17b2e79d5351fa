// explain: variable=field line=14 touched=17 fix=next-touch effect policy=next-touch:at=request
// After some rounds each thread works on another part of the array than before, and keeps to it.
#include <stdio.h>
#include <stdlib.h>
#ifdef FIXED
#define HN_HEADER_ONLY
#include <homenode.h>
#endif

enum { COUNT = 1 << 20, BLOCKS = 64, ROUNDS = 24, CHANGE = 8 };

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
