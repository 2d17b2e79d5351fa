/* exit() inside a parallel region, with output still in stdio's buffer and a handler. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static void goodbye(void) { printf("handler\n"); }

int main(void) {
    static int data[4096];
    atexit(goodbye);
    printf("buffered\n");
#pragma omp parallel
    {
        for (int i = omp_get_thread_num(); i < 4096; i += omp_get_num_threads()) data[i] = i;
#pragma omp barrier
#pragma omp master
        {
            printf("leaving %d\n", data[4095]);
            exit(7);
        }
#pragma omp barrier
    }
    return 0;
}
