/* Allocates two arrays in each round, fills and reads them with all threads, and frees them.
 * Prints the seconds of all rounds, and a sum that must not change.
 *
 * usage: anew malloc|mmap ROUNDS MIB (of each array) */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static double *take(int by_mmap, size_t bytes) {
    if (!by_mmap) return malloc(bytes);
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return m == MAP_FAILED ? NULL : m;
}

static void give_back(int by_mmap, double *array, size_t bytes) {
    if (by_mmap)
        munmap(array, bytes);
    else
        free(array);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int by_mmap = !strcmp(argv[1], "mmap");
    int rounds = atoi(argv[2]);
    size_t n = (size_t)atoi(argv[3]) * 131072, bytes = n * sizeof(double);
    double sum = 0, begin = omp_get_wtime();
    for (int round = 0; round < rounds; round++) {
        double *a = take(by_mmap, bytes), *b = take(by_mmap, bytes);
        if (!a || !b) return 1;
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) a[i] = (double)(i + round);
        /* Each thread reads what the other one wrote. */
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) b[i] = 2 * a[n - 1 - i];
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < n; i++) sum += b[i];
        give_back(by_mmap, a, bytes);
        give_back(by_mmap, b, bytes);
    }
    printf("%.6f %.0f\n", omp_get_wtime() - begin, sum);
    return 0;
}
