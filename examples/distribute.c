/* Factorises a matrix (LU without pivots) whose columns are dealt to the nodes in turn, and checks
 * where its pages are. Each thread works on the columns of its node.
 *
 *   cc -fopenmp distribute.c $(pkg-config --cflags --libs homenode) -o distribute && ./distribute
 *   cc -fopenmp -DHN_HEADER_ONLY distribute.c -Iinclude -o distribute     without the library
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <homenode.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 300 };

static void must(int code, const char *what)
{
    if (code == HN_OK || code == HN_IDLE)
        return;
    fprintf(stderr, "distribute: %s: %s: %s\n", what, hn_message(code), hn_last_error());
    exit(1);
}

int main(void)
{
    /* Columns are the outer dimension; rows of the C array are columns of the matrix. */
    const size_t extents[] = {N, N};
    const int64_t spec[] = {HN_CYCLIC(1), HN_STAR};
    hn_distribution columns;
    must(hn_alloc_padded(extents, sizeof(double), 2, spec, HN_OVER_NODES, &columns), "alloc");
    double *a = columns.address;
    const size_t ld = columns.leading;

    long long touched = 0;
#pragma omp parallel reduction(+ : touched)
    {
        size_t low, high;
        uint64_t cursor = 0;
        must(hn_bind_share(&columns), "bind");
        while (hn_next(&columns, 0, &cursor, &low, &high) == HN_OK)
            for (size_t j = low; j < high; j++)
                for (size_t i = 0; i < N; i++, touched++)
                    a[j * ld + i] = i == j ? 2.0 * N : 1.0 / (double)(1 + i + j);
    }
    if (touched != (long long)N * N) {
        fprintf(stderr, "distribute: %lld elements were written, not %d\n", touched, N * N);
        return 1;
    }

    for (size_t k = 0; k + 1 < N; k++) {
        for (size_t i = k + 1; i < N; i++)
            a[k * ld + i] /= a[k * ld + k];
#pragma omp parallel
        {
            size_t low, high;
            uint64_t cursor = 0;
            while (hn_next(&columns, 0, &cursor, &low, &high) == HN_OK)
                for (size_t j = low > k ? low : k + 1; j < high; j++)
                    for (size_t i = k + 1; i < N; i++)
                        a[j * ld + i] -= a[k * ld + i] * a[j * ld + k];
        }
    }

    /* L · U is the matrix again. */
    double worst = 0;
    for (size_t j = 0; j < N; j++)
        for (size_t i = 0; i < N; i++) {
            double sum = 0;
            for (size_t k = 0; k <= (i < j ? i : j); k++)
                sum += (k == i ? 1.0 : a[k * ld + i]) * a[j * ld + k];
            worst = fmax(worst, fabs(sum - (i == j ? 2.0 * N : 1.0 / (double)(1 + i + j))));
        }
    if (worst > 1e-9) {
        fprintf(stderr, "distribute: L · U differs by %g\n", worst);
        return 1;
    }

    hn_spread found;
    must(hn_verify_distribution(&columns, &found), "verify");
    printf("%d parts, rows of %zu: %llu of %llu pages at home, %llu of %llu bytes rounded away\n", columns.grid[0], ld,
           (unsigned long long)found.there, (unsigned long long)found.pages, (unsigned long long)found.stray,
           (unsigned long long)found.bytes);
    must(hn_free_padded(&columns), "free");
    printf("ok\n");
    return 0;
}
