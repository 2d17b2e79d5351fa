/* A write through a null pointer ends the program as it would without instrumentation. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    (void)argv;
    volatile int *p = argc > 100 ? &argc : NULL;
    printf("before\n");
    fflush(stdout);
    *p = 1;
    return 0;
}
