// run: nothing-to-gain rounds=80 lab=20
// Arrays are allocated and freed in each round. The threads that use them touch them first.
#include <stdio.h>
#include <sys/mman.h>
#include <stdlib.h>

enum { CELLS = 1 << 19, PASSES = 4 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 80;
    double sum = 0;
    for (int round = 0; round < rounds; round++) {
        double *field = mmap(0, CELLS * sizeof *field, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (field == MAP_FAILED) return 1;
        for (int pass = 0; pass < PASSES; pass++) {
#pragma omp parallel for schedule(static)
            for (long i = 0; i < CELLS; i++) field[i] = 0.5 * field[i] + round;
        }
        sum += field[77];
        munmap(field, CELLS * sizeof *field);
    }
    printf("%g\n", sum);
    return 0;
}
