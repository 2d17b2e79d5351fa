// explain: variable=rows line=9 touched=19 fix=match-schedule call=HN_CYCLIC effect
// The initialising loop deals blocks of rows to the threads, the working loop single rows.
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1024, COLUMNS = 1024 };

int main(void) {
    double *rows = malloc(sizeof(double) * ROWS * COLUMNS);
    if (!rows) return 1;
#pragma omp parallel
    {
#ifdef FIXED
#pragma omp for schedule(static, 1)
#else
#pragma omp for schedule(static)
#endif
        for (long i = 0; i < ROWS; i++)
            for (long j = 0; j < COLUMNS; j++) rows[i * COLUMNS + j] = i;
    }
    for (int round = 0; round < 10; round++) {
#pragma omp parallel for schedule(static, 1)
        for (long i = 0; i < ROWS; i++)
            for (long j = 0; j < COLUMNS; j++) rows[i * COLUMNS + j] = 0.5 * rows[i * COLUMNS + j] + round;
    }
    printf("%g\n", rows[COLUMNS]);
    return 0;
}
