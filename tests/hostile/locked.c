/* Locked memory stays locked, and whole. */
#include "hostile.h"

static long locked_kib(void) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmLck:", 6)) kib = atol(line + 6);
    if (f) fclose(f);
    return kib;
}

int main(void) {
    size_t n = 2 * MiB;
    uint64_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *other = malloc(n);
    must(p != MAP_FAILED, "mmap");
    fill(p, n, 1);
    fill(other, n, 2);
    usleep(20000);
    if (mlock(p, n)) return skipped("mlock is not allowed");
    double end = end_time();
    while (now() < end) {
        check(p, n, 1, "locked");
        check(other, n, 2, "not locked");
        if (locked_kib() != (long)(n >> 10)) wrong_bytes += 1, fprintf(stderr, "the lock was lost\n");
        usleep(1500);
    }
    return done();
}
