// explain: variable=grid line=17 touched=25 fix=parallel-first-touch call=HN_BLOCK effect
// A stencil whose arrays one thread initialises. The argument is the number of rows.
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 1024 };

static void sweep(const double *from, double *to, long rows) {
#pragma omp parallel for schedule(static)
    for (long i = 1; i < rows - 1; i++)
        for (long j = 1; j < COLUMNS - 1; j++)
            to[i * COLUMNS + j] = 0.25 * (from[(i - 1) * COLUMNS + j] + from[(i + 1) * COLUMNS + j] + from[i * COLUMNS + j - 1] + from[i * COLUMNS + j + 1]);
}

int main(int argc, char **argv) {
    long rows = argc > 1 ? atol(argv[1]) : 514;
    double *grid = malloc(rows * COLUMNS * sizeof *grid);
    double *next = malloc(rows * COLUMNS * sizeof *next);
    if (!grid || !next) return 1;
#ifdef FIXED
#pragma omp parallel for schedule(static)
#endif
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < COLUMNS; j++) {
            grid[i * COLUMNS + j] = i == 0;
            next[i * COLUMNS + j] = i == 0;
        }
    for (int round = 0; round < 10; round++) {
        sweep(grid, next, rows);
        sweep(next, grid, rows);
    }
    printf("%g\n", grid[COLUMNS + COLUMNS / 2]);
    return 0;
}
