/* A run-time that makes system calls by its own instructions, as Go's does. No library sees them,
 * and they fail at memory that was taken away. A note in the file says that the run-time is there,
 * as Go's does. */
#include "hostile.h"
#include <sys/syscall.h>

__asm__(".pushsection .note.go.buildid,\"a\",@note\n"
        ".p2align 2\n"
        ".long 4, 4, 4\n"
        ".asciz \"Go\"\n"
        ".byte 0\n"
        ".ascii \"test\"\n"
        ".popsection\n");

static long raw_pwrite(int fd, const void *p, size_t n) {
    register long r10 __asm__("r10") = 0;
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "0"(SYS_pwrite64), "D"(fd), "S"(p), "d"(n), "r"(r10) : "rcx", "r11", "memory");
    return r;
}

int main(void) {
    size_t n = 4 * MiB;
    uint64_t *p = malloc(n);
    fill(p, n, 8);
    char path[] = "/tmp/homenode-raw-XXXXXX";
    int fd = mkstemp(path);
    must(fd >= 0 && !unlink(path), "mkstemp");
    long failed = 0;
    for (double end = end_time(); now() < end; usleep(1500)) failed += raw_pwrite(fd, p, n) != (long)n;
    if (failed) fprintf(stderr, "%ld writes failed\n", failed);
    check(p, n, 8, "memory");
    wrong_bytes += failed;
    return done();
}
