/* Fixed buffers of io_uring: the kernel has pinned the pages; a copy of one is another page. Without liburing. */
#include "hostile.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static long raw(long n, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
}

int main(void) {
    size_t n = MiB;
    uint64_t *buffer = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *other = malloc(4 * n);
    fill(buffer, n, 1);
    fill(other, 4 * n, 7);
    wait_until_armed(buffer, n, "the buffer, before there is a ring");
    /* A second time: the first is over then. */
    check(buffer, n, 1, "armed");
    wait_until_armed(buffer, n, "the buffer, before there is a ring");
    struct io_uring_params q = {0};
    /* By system calls that no library sees. */
    long ring = raw(SYS_io_uring_setup, 4, (long)&q, 0, 0, 0, 0);
    if (ring < 0) return skipped("no io_uring");
    size_t bytes = q.sq_off.array + q.sq_entries * sizeof(unsigned);
    size_t cq_bytes = q.cq_off.cqes + q.cq_entries * sizeof(struct io_uring_cqe);
    char *sq = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)ring, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, cq_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqe = mmap(NULL, q.sq_entries * sizeof *sqe, PROT_READ | PROT_WRITE, MAP_SHARED, (int)ring,
                                    IORING_OFF_SQES);
    must(sq != MAP_FAILED && cq != MAP_FAILED && sqe != MAP_FAILED, "ring");
    struct iovec v = {buffer, n};
    long registered = -1;
    /* What was armed before the ring was there may refuse once; never silently. */
    for (int i = 0; i < 100 && registered < 0; i++) {
        fill(buffer, n, 1);
        registered = raw(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, (long)&v, 1, 0, 0);
        if (registered < 0) usleep(10000);
    }
    if (registered == -ENOMEM) return skipped("too little memory may be locked");
    errno = (int)-registered;
    must(registered == 0, "register");
    FILE *f = tmpfile();
    uint64_t *content = malloc(n);
    double end = end_time();
    unsigned *tail = (unsigned *)(sq + q.sq_off.tail), *array = (unsigned *)(sq + q.sq_off.array);
    unsigned *head = (unsigned *)(cq + q.cq_off.head);
    for (uint64_t salt = 1; now() < end; salt++) {
        fill(content, n, salt);
        must(pwrite(fileno(f), content, n, 0) == (ssize_t)n, "pwrite");
        fill(buffer, n, 0);
        usleep(1500);
        *sqe = (struct io_uring_sqe){.opcode = IORING_OP_READ_FIXED, .fd = fileno(f), .addr = (uint64_t)buffer,
                                     .len = (unsigned)n};
        array[*tail & *(unsigned *)(sq + q.sq_off.ring_mask)] = 0;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        must(raw(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1, "enter");
        struct io_uring_cqe *cqe = (struct io_uring_cqe *)(cq + q.cq_off.cqes) + (*head & *(unsigned *)(cq + q.cq_off.ring_mask));
        must(cqe->res == (int)n, "read of a fixed buffer");
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
        check(buffer, n, salt, "fixed buffer");
        check(other, 4 * n, 7, "other memory");
    }
    return done();
}
