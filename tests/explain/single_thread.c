// explain: none warning=thread
// One thread does everything: all of its memory is on its node.
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

int main(void) {
    double *a = malloc(sizeof(double) * COUNT);
    if (!a) return 1;
    for (long i = 0; i < COUNT; i++) a[i] = i;
    for (int round = 0; round < 10; round++)
        for (long i = 0; i < COUNT; i++) a[i] = 0.5 * a[i] + round;
    printf("%g\n", a[77]);
    return 0;
}
