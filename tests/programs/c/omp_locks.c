/* omp locks, simple and nested. */
#include <omp.h>
#include <stdio.h>

static omp_nest_lock_t nest;
static long deep;
static void descend(int n) {
    omp_set_nest_lock(&nest);
    deep++;
    if (n > 0) descend(n - 1);
    omp_unset_nest_lock(&nest);
}

int main(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    long count = 0, tried = 0;
#pragma omp parallel
    {
        for (int i = 0; i < 500; i++) {
            omp_set_lock(&lock);
            count += i;
            omp_unset_lock(&lock);
        }
        for (int i = 0; i < 100; i++) {
            while (!omp_test_lock(&lock)) {
            }
            tried++;
            omp_unset_lock(&lock);
        }
        descend(5);
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    printf("count %ld tried %ld deep %ld\n", count, tried, deep);
    return 0;
}
