// explain: variable=field line=17 touched=23 fix=first-touch under=numactl,--interleave=all effect
// Threads touch first what they use, but numactl --interleave=all puts the pages elsewhere.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 19 };

static void relax(double *field, const double *source) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CELLS; i++)
        field[i] = 0.5 * (field[i] + source[i]);
}

int main(void) {
    double *field, *source;
    // One line each: the answer names the first.
    field = malloc(CELLS * sizeof *field);
    source = malloc(CELLS * sizeof *source);
    if (!field || !source) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CELLS; i++) {
        // As relax() deals them.
        field[i] = 0;
        source[i] = i & 1;
    }
    for (int round = 0; round < 10; round++)
        relax(field, source);
    printf("%g\n", field[CELLS / 2]);
    return 0;
}
