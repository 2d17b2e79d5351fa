/* abort() on a thread of a team. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int a[1000];
int main(void) {
    printf("before\n");
    fflush(stdout);
#pragma omp parallel
    {
        for (int i = omp_get_thread_num(); i < 1000; i += omp_get_num_threads()) a[i] = i;
#pragma omp barrier
        if (omp_get_thread_num() == omp_get_num_threads() - 1) abort();
#pragma omp barrier
    }
    return 0;
}
