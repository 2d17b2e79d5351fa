/* MADV_DONTNEED and munmap by raw system calls: memory that was given up is zero, and stays so. */
#include "hostile.h"
#include <sys/syscall.h>

static long raw(long n, void *a, size_t b, long c) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return r;
}

int main(void) {
    double end = end_time();
    size_t n = 4 * MiB;
    while (now() < end) {
        uint64_t *m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(m != MAP_FAILED, "mmap");
        fill(m, n, 3);
        usleep(1500);
        must(raw(SYS_madvise, m, n / 2, MADV_DONTNEED) == 0, "raw madvise");
        for (size_t i = 0; i < n / 16; i++) wrong_bytes += m[i] ? 8 : 0;
        for (size_t i = 0; i < n / 16; i++) m[i] = value(i, 3);
        usleep(1500);
        check(m, n, 3, "after MADV_DONTNEED");
        usleep(1500);
        must(raw(SYS_munmap, m, n, 0) == 0, "raw munmap");
        uint64_t *again = mmap(m, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        for (size_t i = 0; i < n / 8; i++) wrong_bytes += again[i] ? 8 : 0;
        munmap(again, n);
    }
    return done();
}
