/* The library of dlopen_main. */
#include <stdlib.h>
#include <string.h>

static __thread long mine[32];
static long table[1000];

long plugin_work(int n) {
    long *p = calloc(500, sizeof *p), s = 0;
    for (int i = 0; i < 500; i++) p[i] = i * n;
    memmove(p + 1, p, 400 * sizeof *p);
    for (int i = 0; i < 500; i++) s += p[i], mine[i % 32] = s;
    free(p);
    return s + mine[0] * 0;
}

long plugin_parallel(int n) {
    long s = 0;
#pragma omp parallel for
    for (int i = 0; i < n; i++) table[i] = i;
#pragma omp parallel for schedule(dynamic, 9) reduction(+ : s)
    for (int i = 0; i < n; i++) s += table[i];
    return s;
}
