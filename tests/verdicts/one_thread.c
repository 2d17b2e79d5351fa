// run: nothing-seen unbound=nothing-seen rounds=1500 lab=375
// One thread does everything.
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 20 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1500;
    double *field = malloc(CELLS * sizeof *field);
    if (!field) return 1;
    for (long i = 0; i < CELLS; i++) field[i] = i;
    for (int round = 0; round < rounds; round++)
        for (long i = 0; i < CELLS; i++) field[i] = 0.5 * field[i] + round;
    printf("%g\n", field[77]);
    return 0;
}
