// explain: variable=histogram touched=30 fix=separate-pages effect
// Each thread has a part of its own in every bucket; the parts of eight threads share a page.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

enum { BUCKETS = 2048, THREADS = 8, PART = 64 };

#ifdef FIXED
static double histogram[THREADS][BUCKETS][PART] __attribute__((aligned(4096)));
#define AT(b, t, i) histogram[t][b][i]
#else
static double histogram[BUCKETS][THREADS][PART] __attribute__((aligned(4096)));
#define AT(b, t, i) histogram[b][t][i]
#endif

int main(void) {
    int threads = 1;
#ifdef FIXED
#pragma omp parallel for schedule(static, 1)
    for (int t = 0; t < THREADS; t++)
        for (int b = 0; b < BUCKETS; b++)
#else
#pragma omp parallel for schedule(static)
    for (int b = 0; b < BUCKETS; b++)
        for (int t = 0; t < THREADS; t++)
#endif
            for (int i = 0; i < PART; i++)
                // All parts of a bucket are touched first by one thread.
                AT(b, t, i) = 1;
    for (int round = 0; round < 8; round++) {
#pragma omp parallel
        {
            int me = omp_get_thread_num() % THREADS;
            for (int b = 0; b < BUCKETS; b++)
                for (int i = 0; i < PART; i++) AT(b, me, i) += b ^ i;
#pragma omp master
            threads = omp_get_num_threads();
        }
    }
    printf("%d %g\n", threads, AT(7, 0, 3));
    return 0;
}
