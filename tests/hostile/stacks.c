/* Memory that is freed and becomes a thread's stack at once: it must not be armed then. Run it
 * without a cache of stacks (GLIBC_TUNABLES), so that each stack is a mapping of its own. */
#include "hostile.h"

enum { EACH = 8, STACK = 256 << 10 };

static void *run(void *arg) {
    volatile char own[100 << 10];
    memset((void *)own, 1, sizeof own);
    return own[5] ? arg : NULL;
}

static void *loop(void *arg) {
    pthread_attr_t small;
    must(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, STACK), "pthread_attr_setstacksize");
    for (double end = *(double *)arg; now() < end;) {
        char *p[EACH];
        pthread_t t[EACH];
        for (int i = 0; i < EACH; i++) {
            p[i] = mmap(NULL, STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(p[i] != MAP_FAILED, "mmap");
            memset(p[i], 1, STACK);
        }
        usleep(300);
        for (int i = 0; i < EACH; i++) must(!munmap(p[i], STACK + PAGE), "munmap");
        for (int i = 0; i < EACH; i++) must(!pthread_create(&t[i], &small, run, p[i]), "pthread_create");
        for (int i = 0; i < EACH; i++) {
            void *result;
            must(!pthread_join(t[i], &result) && result, "pthread_join");
        }
    }
    return NULL;
}

int main(void) {
    size_t n = 4 * MiB;
    uint64_t *p = malloc(n);
    fill(p, n, 1);
    double end = end_time();
    pthread_t t[3];
    for (int i = 0; i < 3; i++) must(!pthread_create(&t[i], NULL, loop, &end), "pthread_create");
    do check(p, n, 1, "other memory");
    while (now() < end);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    return done();
}
