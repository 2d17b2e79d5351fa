/* Worksharing loops with every schedule; integer sums, so the order does not matter. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define N 20000
static long a[N], b[N];

#define LOOP(sched)                                                       \
    do {                                                                  \
        long sum = 0;                                                     \
        _Pragma("omp parallel") {                                         \
            _Pragma(sched) for (int i = 0; i < N; i++) a[i] = b[i] * 3 + i % 7; \
            _Pragma("omp for reduction(+ : sum)") for (int i = 0; i < N; i++) sum += a[i]; \
        }                                                                 \
        printf("%-36s %ld\n", sched, sum);                                \
    } while (0)

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) b[i] = i;
    LOOP("omp for schedule(static)");
    LOOP("omp for schedule(static, 13)");
    LOOP("omp for schedule(dynamic)");
    LOOP("omp for schedule(dynamic, 17)");
    LOOP("omp for schedule(guided)");
    LOOP("omp for schedule(guided, 5)");
    LOOP("omp for schedule(auto)");
    LOOP("omp for schedule(runtime)");
    LOOP("omp for schedule(dynamic, 3) nowait");
    LOOP("omp for schedule(monotonic: dynamic)");
    omp_set_schedule(omp_sched_guided, 4);
    LOOP("omp for schedule(runtime)");
    unsigned long long total = 0;
#pragma omp parallel for schedule(dynamic, 100) reduction(+ : total)
    for (unsigned long long i = 0; i < 5000ULL; i++) total += i;
    printf("ull %llu\n", total);
    long pairs = 0;
#pragma omp parallel for collapse(2) schedule(dynamic) reduction(+ : pairs)
    for (int i = 0; i < 60; i++)
        for (int j = 0; j < 70; j++) pairs += i ^ j;
    printf("collapse %ld\n", pairs);
    long ordered = 0;
#pragma omp parallel for ordered schedule(dynamic, 2)
    for (int i = 0; i < 300; i++) {
        a[i] = i;
#pragma omp ordered
        ordered = ordered * 31 % 1000003 + i;
    }
    printf("ordered %ld\n", ordered);
    return 0;
}
