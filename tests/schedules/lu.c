/* lu: factors a matrix by columns, with loops that the run-time schedules. For the simulator.
 *
 *   lu N [plain|padded|manual [ROUNDS]]
 *
 * N x N doubles. A column begins every N doubles (plain) or on a page. manual: column j belongs to
 * thread j mod threads, without a schedule clause.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long n, stride;
static double *a;

static void make(long j)
{
    for (long i = 0; i < n; i++)
        a[j * stride + i] = i == j ? (double)n : 1.0 / (double)(1 + labs(i - j));
}

static void update(long j, long k)
{
    double factor = a[j * stride + k];
    for (long i = k + 1; i < n; i++)
        a[j * stride + i] -= factor * a[k * stride + i];
}

static void divide(long k)
{
    double inverse = 1.0 / a[k * stride + k];
    for (long i = k + 1; i < n; i++)
        a[k * stride + i] *= inverse;
}

static void by_schedule(long rounds)
{
#pragma omp parallel for schedule(runtime)
    for (long j = 0; j < n; j++)
        make(j);
    for (long k = 0; k < rounds; k++) {
        divide(k);
#pragma omp parallel for schedule(runtime)
        for (long j = k + 1; j < n; j++)
            update(j, k);
    }
}

static void by_hand(long rounds)
{
#pragma omp parallel
    for (long j = omp_get_thread_num(); j < n; j += omp_get_num_threads())
        make(j);
    for (long k = 0; k < rounds; k++)
#pragma omp parallel
    {
        long me = omp_get_thread_num(), threads = omp_get_num_threads();
        if (k % threads == me)
            divide(k);
#pragma omp barrier
        for (long j = k + 1 + (me + threads - (k + 1) % threads) % threads; j < n; j += threads)
            update(j, k);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "plain";
    n = argc > 1 ? atol(argv[1]) : 96;
    stride = strcmp(how, "plain") ? (n + 511) / 512 * 512 : n;
    long rounds = argc > 3 && atol(argv[3]) < n ? atol(argv[3]) : n - 1;
    a = aligned_alloc(4096, (sizeof *a * (size_t)(n * stride) + 4095) / 4096 * 4096);
    if (!a)
        return 1;
    if (strcmp(how, "manual"))
        by_schedule(rounds);
    else
        by_hand(rounds);
    double trace = 0;
    for (long i = 0; i < n; i++)
        trace += a[i * stride + i];
    printf("%.6f\n", trace);
    free(a);
    return 0;
}
