// explain: variable=matrix line=9 touched=14 fix=interchange-loops effect
// Threads initialise rows and work on columns, so all threads use each page.
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2048, COLUMNS = 512 };

int main(void) {
    double *matrix = malloc(sizeof(double) * ROWS * COLUMNS);
    double sum[COLUMNS] = { 0 };
    if (!matrix) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < ROWS; i++)
        for (long j = 0; j < COLUMNS; j++) matrix[i * COLUMNS + j] = i;
    for (int round = 0; round < 8; round++) {
#ifdef FIXED
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (long i = 0; i < ROWS; i++)
            for (long j = 0; j < COLUMNS; j++) {
                matrix[i * COLUMNS + j] *= 0.5;
                sum[j] += matrix[i * COLUMNS + j];
            }
#else
#pragma omp parallel for schedule(static)
        for (long j = 0; j < COLUMNS; j++) {
            double column = 0;
            for (long i = 0; i < ROWS; i++) {
                matrix[i * COLUMNS + j] *= 0.5;
                column += matrix[i * COLUMNS + j];
            }
            sum[j] += column;
        }
#endif
    }
    printf("%g\n", sum[3]);
    return 0;
}
