// run: pays array=buffer rounds=95 lab=23
// The first thread writes each frame into a buffer; all threads then go through it several times.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 20, PASSES = 8 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 95;
    double *buffer = malloc(CELLS * sizeof *buffer);
    double sum = 0;
    if (!buffer) return 1;
    for (int round = 0; round < rounds; round++) {
        for (long i = 0; i < CELLS; i++) buffer[i] = round;
        for (int pass = 0; pass < PASSES; pass++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
            for (long i = 0; i < CELLS; i++) sum += buffer[i];
        }
    }
    printf("%g\n", sum);
    return 0;
}
