/* Memory from an allocator of the program's own, by several threads. */
#include "allocator.h"

static void *churn(void *arg) {
    double end = *(double *)arg;
    for (uint64_t round = 0; now() < end; round++) {
        size_t n = (64 + round % 5 * 100) * 1024;
        uint64_t *p = malloc(n);
        must(p != NULL, "malloc");
        fill(p, n, round);
        p = realloc(p, n + 4096);
        must(p != NULL, "realloc");
        check(p, n, round, "own allocator");
        free(p);
    }
    return NULL;
}

int main(void) {
    double end = end_time();
    pthread_t t[3];
    for (size_t i = 0; i < 3; i++) must(!pthread_create(&t[i], NULL, churn, &end), "pthread_create");
    for (size_t i = 0; i < 3; i++) pthread_join(t[i], NULL);
    return done();
}
