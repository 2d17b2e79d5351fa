// run: pays array=matrix rounds=2000 lab=500
// The initialising loop deals blocks of rows to the threads, the working loop single rows.
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 512, COLUMNS = 2048 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 2000;
    double *matrix = aligned_alloc(4096, sizeof(double) * ROWS * COLUMNS);
    if (!matrix) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < ROWS; i++)
        for (long j = 0; j < COLUMNS; j++) matrix[i * COLUMNS + j] = i;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static, 1)
        for (long i = 0; i < ROWS; i++)
            for (long j = 0; j < COLUMNS; j++) matrix[i * COLUMNS + j] = 0.5 * matrix[i * COLUMNS + j] + round;
    }
    printf("%g\n", matrix[COLUMNS]);
    return 0;
}
