// run: pays array=scattered rounds=2800 lab=700
// Two arrays are allocated on one line. The threads that use `settled` touch it first; one thread
// initialises `scattered`.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 19 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 2800;
    double *settled = malloc(CELLS * sizeof *settled), *scattered = malloc(CELLS * sizeof *scattered);
    if (!settled || !scattered) return 1;
    for (long i = 0; i < CELLS; i++) scattered[i] = i;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CELLS; i++) settled[i] = i;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < CELLS; i++) settled[i] = 0.5 * (settled[i] + scattered[i]);
    }
    printf("%g\n", settled[77]);
    return 0;
}
