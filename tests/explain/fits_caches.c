// explain: none warning=fits
// The array fits the caches: where its pages live hardly matters.
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 15 };

int main(void) {
    double *a = malloc(sizeof(double) * COUNT);
    if (!a) return 1;
    for (long i = 0; i < COUNT; i++) a[i] = i;
    for (int round = 0; round < 40; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < COUNT; i++) a[i] = 0.5 * a[i] + round;
    }
    printf("%g\n", a[77]);
    return 0;
}
