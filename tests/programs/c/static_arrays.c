/* Large static arrays (.bss and .data), touched by all threads; false sharing; first touch by one
 * loop. */
#include <omp.h>
#include <stdio.h>

#define N (1 << 20)
static double x[N], y[N];
static int table[4096] = {1, 2, 3};
static struct { long n; } near[64];

int main(void) {
    for (int i = 0; i < N; i++) x[i] = 0; /* the compilers like to make a memset of this */
    for (int i = 0; i < N; i++) y[i] = x[i];
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++) y[i] = x[i] + table[i & 4095] + i * 0.5;
#pragma omp parallel
    for (int k = 0; k < 1000; k++) near[omp_get_thread_num()].n++;
    double s = 0;
    long n = 0;
    for (int i = 0; i < N; i++) s += y[i];
    for (int i = 0; i < 64; i++) n += near[i].n;
    printf("%.1f %ld\n", s, n);
    return 0;
}
