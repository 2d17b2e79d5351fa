/* realloc, mremap, munmap of parts, MADV_DONTNEED, MADV_FREE and mprotect of memory that may be
 * armed. */
#include "hostile.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

int main(void) {
    double end = end_time();
    for (uint64_t round = 0; now() < end; round++) {
        size_t n = 4 * MiB;
        uint64_t *p = malloc(n);
        fill(p, n, round);
        usleep(1500);
        p = realloc(p, 2 * n);
        check(p, n, round, "realloc, longer");
        usleep(1500);
        p = realloc(p, n / 2);
        check(p, n / 2, round, "realloc, shorter");
        free(p);

        uint64_t *m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(m != MAP_FAILED, "mmap");
        fill(m, n, round);
        usleep(1500);
        m = mremap(m, n, 2 * n, MREMAP_MAYMOVE);
        must(m != MAP_FAILED, "mremap");
        check(m, n, round, "mremap");
        usleep(1500);
        must(!mprotect(m, n, PROT_READ), "mprotect");
        usleep(1500);
        check(m, n, round, "read only");
        must(!mprotect(m, n, PROT_READ | PROT_WRITE), "mprotect");
        must(!madvise(m, n / 2, MADV_DONTNEED), "madvise");
        for (size_t i = 0; i < n / 16; i++) wrong_bytes += m[i] ? 8 : 0;
        if (wrong_bytes) fprintf(stderr, "MADV_DONTNEED: %ld wrong bytes\n", wrong_bytes);
        for (size_t i = n / 16; i < n / 8; i++) wrong_bytes += m[i] == value(i, round) ? 0 : 8;
        usleep(1500);
        must(!munmap((char *)m + MiB, MiB), "munmap");
        for (size_t i = n / 16; i < n / 8; i++) wrong_bytes += m[i] == value(i, round) ? 0 : 8;
        /* What is written after MADV_FREE stays; of the rest each word is as it was, or zero. */
        uint64_t *rest = m + n / 8;
        fill(rest, n, round);
        usleep(1500);
        must(!madvise(rest, n, MADV_FREE), "madvise");
        for (size_t i = 0; i < n / 16; i++) rest[i] = value(i, round + 1);
        usleep(1500);
        check(rest, n / 2, round + 1, "MADV_FREE, written");
        for (size_t i = n / 16; i < n / 8; i++) wrong_bytes += rest[i] && rest[i] != value(i, round) ? 8 : 0;
        must(!munmap(m, 2 * n), "munmap");

        /* The old mapping stays, without its pages. */
        uint64_t *left = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(left != MAP_FAILED, "mmap");
        fill(left, n, round);
        usleep(1500);
        uint64_t *right = mremap(left, n, n, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
        must(right != MAP_FAILED, "mremap(MREMAP_DONTUNMAP)");
        check(right, n, round, "MREMAP_DONTUNMAP");
        usleep(1500);
        check(right, n, round, "MREMAP_DONTUNMAP, later");
        for (size_t i = 0; i < n / 8; i++) wrong_bytes += left[i] ? 8 : 0;
        fill(left, n, round + 1);
        usleep(1500);
        check(left, n, round + 1, "what MREMAP_DONTUNMAP left");
        must(!munmap(left, n) && !munmap(right, n), "munmap");
    }
    return done();
}
