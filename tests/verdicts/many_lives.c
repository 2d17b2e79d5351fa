// run: pays array=field rounds=800 lab=200 lab-budget=1%+2s
// A small array lives for one round only, in each round. One thread initialises a large array.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 20, SMALL = 125 * 512 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 800;
    double *field = malloc(CELLS * sizeof *field);
    if (!field) return 1;
    for (long i = 0; i < CELLS; i++) field[i] = i;
    for (int round = 0; round < rounds; round++) {
        double *small = malloc(SMALL * sizeof *small);
        if (!small) return 1;
        for (long i = 0; i < SMALL; i++) small[i] = round;
#pragma omp parallel for schedule(static)
        for (long i = 0; i < CELLS; i++) field[i] = 0.5 * field[i] + small[i * SMALL / CELLS];
        free(small);
    }
    printf("%g\n", field[77]);
    return 0;
}
