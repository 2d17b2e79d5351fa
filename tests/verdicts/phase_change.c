// run: pays array=field rounds=1500 lab=375
// After a third of the rounds each thread works on another part of the array, and keeps to it.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 20, BLOCKS = 64 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1500;
    const long each = CELLS / BLOCKS;
    double *field = malloc(CELLS * sizeof *field);
    if (!field) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CELLS; i++) field[i] = i;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long b = 0; b < BLOCKS; b++) {
            const long block = round < rounds / 3 ? b : BLOCKS - 1 - b;
            for (long i = block * each; i < (block + 1) * each; i++) field[i] = 0.5 * field[i] + round;
        }
    }
    printf("%g\n", field[77]);
    return 0;
}
