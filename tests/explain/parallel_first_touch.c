// explain: none
// The loops that initialise and that work deal the same elements to the same threads.
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

int main(void) {
    double *a = malloc(sizeof(double) * COUNT);
    if (!a) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < COUNT; i++) a[i] = i;
    for (int round = 0; round < 10; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < COUNT; i++) a[i] = 0.5 * a[i] + round;
    }
    printf("%g\n", a[77]);
    return 0;
}
