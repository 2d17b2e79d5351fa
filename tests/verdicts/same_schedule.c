// run: nothing-to-gain rounds=1500 lab=375
// The loops that initialise and that work deal the same elements to the same threads.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 20 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1500;
    double *field = malloc(CELLS * sizeof *field);
    if (!field) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CELLS; i++) field[i] = i;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < CELLS; i++) field[i] = 0.5 * field[i] + round;
    }
    printf("%g\n", field[77]);
    return 0;
}
