/* mremap by a raw system call, and at once the C library's write and read of the moved memory. If
 * only a part of the mapping is armed, the call may be refused with EFAULT and change nothing; a
 * program then moves the memory by hand. */
#include "hostile.h"
#include <sys/syscall.h>

static long refused;

static void *raw_mremap(void *at, size_t old, size_t bytes) {
    register long flags __asm__("r10") = MREMAP_MAYMOVE;
    long to;
    __asm__ volatile("syscall"
                     : "=a"(to)
                     : "0"((long)SYS_mremap), "D"(at), "S"(old), "d"(bytes), "r"(flags)
                     : "rcx", "r11", "memory");
    if (to > 0) return (void *)to;
    errno = (int)-to;
    must(errno == EFAULT, "raw mremap");
    refused++;
    return NULL;
}

static void *by_hand(void *at, size_t old, size_t bytes) {
    void *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(to != MAP_FAILED, "mmap");
    memcpy(to, at, old);
    must(!munmap(at, old), "munmap");
    return to;
}

int main(void) {
    double end = end_time();
    int p[2];
    must(!pipe(p), "pipe");
    for (uint64_t round = 0; now() < end; round++) {
        size_t n = 2 * MiB;
        uint64_t *m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(m != MAP_FAILED, "mmap");
        fill(m, n, round);
        usleep(1500);
        uint64_t *moved = raw_mremap(m, n, 2 * n);
        if (!moved) {
            check(m, n, round, "refused mremap");
            moved = by_hand(m, n, 2 * n);
        }
        m = moved;
        /* The kernel reads what has just moved. */
        uint64_t piece[512];
        for (size_t at = 0; at < n / 8; at += 64 * 512) {
            ssize_t written = write(p[1], m + at, sizeof piece);
            must(written == (ssize_t)sizeof piece, "write of what was moved");
            must(read(p[0], piece, sizeof piece) == (ssize_t)sizeof piece, "read");
            for (size_t i = 0; i < 512; i++) wrong_bytes += piece[i] == value(at + i, round) ? 0 : 8;
        }
        if (wrong_bytes) fprintf(stderr, "through a pipe: %ld wrong bytes\n", wrong_bytes);
        check(m, n, round, "raw mremap");
        usleep(1500);
        check(m, n, round, "raw mremap, later");
        must(!munmap(m, 2 * n), "munmap");
    }
    fprintf(stderr, "%ld refused\n", refused);
    return done();
}
