/* Threads that are not OpenMP's: made, ended, cancelled in a read, with their own mappings; the
 * array outlives them. */
#include "hostile.h"

static size_t n = 4 * MiB;
static uint64_t *p;
static int never[2];

static void *look(void *arg) {
    uint64_t *own = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(own != MAP_FAILED, "mmap");
    fill(own, MiB, (uint64_t)arg);
    size_t from = (size_t)arg * n / 32, k = n / 32;
    for (size_t i = from; i < from + k; i++) __atomic_fetch_add(&wrong_bytes, p[i] == value(i, 8) ? 0 : 8, __ATOMIC_RELAXED);
    for (size_t i = 0; i < MiB / 8; i++) __atomic_fetch_add(&wrong_bytes, own[i] == value(i, (uint64_t)arg) ? 0 : 8, __ATOMIC_RELAXED);
    must(!munmap(own, MiB), "munmap");
    return NULL;
}

static void *sleeper(void *arg) {
    (void)arg;
    char buffer[256];
    while (read(never[0], buffer, sizeof buffer) >= 0) {}
    return NULL;
}

int main(void) {
    p = malloc(n);
    fill(p, n, 8);
    must(!pipe(never), "pipe");
    double end = end_time();
    while (now() < end) {
        pthread_t t[4], s;
        must(!pthread_create(&s, NULL, sleeper, NULL), "pthread_create");
        for (size_t i = 0; i < 4; i++) must(!pthread_create(&t[i], NULL, look, (void *)i), "pthread_create");
        for (size_t i = 0; i < 4; i++) pthread_join(t[i], NULL);
        void *result;
        pthread_cancel(s);
        pthread_join(s, &result);
        must(result == PTHREAD_CANCELED, "cancelled");
    }
    return done();
}
