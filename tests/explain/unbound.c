// explain: none warning=OMP_PROC_BIND
// Threads touch first what they use, but are not bound: they may leave their pages behind.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 19 };

int main(void) {
    double *field = malloc(CELLS * sizeof *field);
    if (!field) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CELLS; i++)
        field[i] = i & 1;
    for (int round = 0; round < 10; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < CELLS; i++)
            field[i] = 0.5 * field[i] + 1;
    }
    printf("%g\n", field[CELLS / 2]);
    return 0;
}
