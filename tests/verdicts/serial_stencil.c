// run: pays array=grid,next rounds=270 lab=67 lab-budget=1%+2s
// A stencil whose arrays one thread initialises.
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1026, COLUMNS = 1024 };

static void sweep(const double *from, double *to) {
#pragma omp parallel for schedule(static)
    for (long i = COLUMNS; i < (ROWS - 1L) * COLUMNS; i++)
        to[i] = 0.25 * (from[i - COLUMNS] + from[i + COLUMNS] + from[i - 1] + from[i + 1]);
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 270;
    double *grid = malloc(sizeof(double) * ROWS * COLUMNS);
    double *next = malloc(sizeof(double) * ROWS * COLUMNS);
    if (!grid || !next) return 1;
    for (long i = 0; i < (long)ROWS * COLUMNS; i++) grid[i] = next[i] = i < COLUMNS;
    for (int round = 0; round < rounds; round++) {
        sweep(grid, next);
        sweep(next, grid);
    }
    printf("%g\n", grid[COLUMNS + COLUMNS / 2]);
    return 0;
}
