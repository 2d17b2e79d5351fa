/* Linux's asynchronous I/O (io_submit): the kernel fills memory when no call of the program's names
 * it. Where the file's disk allows it, the reads bypass the page cache (O_DIRECT), and the disk
 * writes to the very pages. The calls are raw system calls, or the C library's with "by-call".
 * Without libaio. */
#include "hostile.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>

enum { READS = 8 };

static int by_call;

static long raw(long n, long a, long b, long c, long d, long e) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return r;
}

static long call(long n, long a, long b, long c, long d, long e) {
    if (!by_call) return raw(n, a, b, c, d, e);
    long r = syscall(n, a, b, c, d, e);
    return r < 0 ? -errno : r;
}

/* Has all of the buffer read, in parts that are under way together. 0, or what the kernel
 * refused. */
static long fill_from(aio_context_t context, int fd, char *buffer, size_t n) {
    struct iocb orders[READS], *list[READS];
    struct io_event events[READS];
    size_t part = n / READS;
    for (size_t i = 0; i < READS; i++) {
        orders[i] = (struct iocb){.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (uint32_t)fd, .aio_buf = (uintptr_t)(buffer + i * part),
                                  .aio_nbytes = part, .aio_offset = (int64_t)(i * part)};
        list[i] = &orders[i];
    }
    long submitted = 0, refused = 0, ended = 0;
    while (submitted < READS && !refused) {
        long r = call(SYS_io_submit, (long)context, READS - submitted, (long)(list + submitted), 0, 0);
        if (r > 0) submitted += r;
        else refused = r ? r : -EAGAIN;
    }
    /* Memory may be armed while they are under way. */
    usleep(1500);
    while (ended < submitted) {
        long r = call(SYS_io_getevents, (long)context, 1, READS, (long)events, 0);
        errno = (int)-r;
        must(r > 0, "io_getevents");
        for (long i = 0; i < r; i++)
            if (events[i].res != (int64_t)part) refused = events[i].res < 0 ? (long)events[i].res : -EIO;
        ended += r;
    }
    return refused;
}

int main(int argc, char **argv) {
    by_call = argc > 1 && !strcmp(argv[1], "by-call");
    size_t n = MiB;
    uint64_t *buffer = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *other = malloc(4 * n), *content = malloc(n);
    must(buffer != MAP_FAILED && other && content, "memory");
    fill(buffer, n, 1);
    fill(other, 4 * n, 7);
    usleep(20000);
    aio_context_t context = 0;
    if (call(SYS_io_setup, READS, (long)&context, 0, 0, 0) < 0) return skipped("no asynchronous I/O");
    FILE *f = tmpfile();
    must(f != NULL, "tmpfile");
    fill(content, n, 0);
    must(pwrite(fileno(f), content, n, 0) == (ssize_t)n, "pwrite");
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fileno(f));
    int fd = open(name, O_RDONLY | O_DIRECT);
    if (fd < 0) fd = fileno(f);
    /* What was armed before the context was there may refuse once; never silently. */
    long refused = -EFAULT;
    for (int i = 0; i < 100 && refused; i++) {
        fill(buffer, n, 1);
        refused = fill_from(context, fd, (char *)buffer, n);
        if (refused == -EINVAL && fd != fileno(f)) fd = fileno(f);
        if (refused) usleep(10000);
    }
    errno = (int)-refused;
    must(!refused, "the first reads");
    double end = end_time();
    for (uint64_t salt = 1; now() < end; salt++) {
        fill(content, n, salt);
        must(pwrite(fileno(f), content, n, 0) == (ssize_t)n, "pwrite");
        fill(buffer, n, 0);
        usleep(1500);
        refused = fill_from(context, fd, (char *)buffer, n);
        errno = (int)-refused;
        must(!refused, "reads");
        check(buffer, n, salt, "asynchronous reads");
        check(other, 4 * n, 7, "other memory");
    }
    return done();
}
