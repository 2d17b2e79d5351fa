/* io_uring: the kernel fills memory when no call of the program's names it. Fixed buffers are
 * pinned, and a copy of a page is another page. "ordinary" buffers are not pinned; a thread of the
 * kernel's comes to them at any time. Without liburing. */
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

/* A ring, and where its parts are. */
static long ring;
static struct io_uring_params q;
static char *sq, *cq;
static struct io_uring_sqe *sqe;

static void map_ring(void) {
    size_t bytes = q.sq_off.array + q.sq_entries * sizeof(unsigned);
    size_t cq_bytes = q.cq_off.cqes + q.cq_entries * sizeof(struct io_uring_cqe);
    sq = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)ring, IORING_OFF_SQ_RING);
    cq = mmap(NULL, cq_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)ring, IORING_OFF_CQ_RING);
    sqe = mmap(NULL, q.sq_entries * sizeof *sqe, PROT_READ | PROT_WRITE, MAP_SHARED, (int)ring, IORING_OFF_SQES);
    must(sq != MAP_FAILED && cq != MAP_FAILED && sqe != MAP_FAILED, "ring");
}

/* What the kernel says of an order. */
static int carried_out(struct io_uring_sqe order) {
    unsigned *tail = (unsigned *)(sq + q.sq_off.tail), *array = (unsigned *)(sq + q.sq_off.array);
    unsigned *head = (unsigned *)(cq + q.cq_off.head);
    *sqe = order;
    array[*tail & *(unsigned *)(sq + q.sq_off.ring_mask)] = 0;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    must(raw(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1, "enter");
    struct io_uring_cqe *cqe = (struct io_uring_cqe *)(cq + q.cq_off.cqes) + (*head & *(unsigned *)(cq + q.cq_off.ring_mask));
    int result = cqe->res;
    errno = result < 0 ? -result : EIO;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}

int main(int argc, char **argv) {
    int ordinary = argc > 1 && !strcmp(argv[1], "ordinary");
    size_t n = MiB;
    uint64_t *buffer = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *other = malloc(4 * n);
    fill(buffer, n, 1);
    fill(other, 4 * n, 7);
    if (ordinary) {
        usleep(20000);
    } else {
        wait_until_armed(buffer, n, "the buffer, before there is a ring");
        /* A second time: the first is over then. */
        check(buffer, n, 1, "armed");
        wait_until_armed(buffer, n, "the buffer, before there is a ring");
    }
    /* By system calls that no library sees. */
    ring = raw(SYS_io_uring_setup, 4, (long)&q, 0, 0, 0, 0);
    if (ring < 0) return skipped("no io_uring");
    map_ring();
    FILE *f = tmpfile();
    must(f != NULL, "tmpfile");
    uint64_t *content = malloc(n);
    fill(content, n, 0);
    must(pwrite(fileno(f), content, n, 0) == (ssize_t)n, "pwrite");
    /* An ordinary one is carried out by a thread of the kernel's, also if the file is in memory. */
    struct io_uring_sqe order = {.opcode = ordinary ? IORING_OP_READ : IORING_OP_READ_FIXED, .flags = ordinary ? IOSQE_ASYNC : 0,
                                 .fd = fileno(f), .addr = (uint64_t)buffer, .len = (unsigned)n};
    struct iovec v = {buffer, n};
    long good = -1;
    /* What was armed before the ring was there may refuse once; never silently. */
    for (int i = 0; i < 100 && good < 0; i++) {
        fill(buffer, n, 1);
        good = ordinary ? carried_out(order) : raw(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, (long)&v, 1, 0, 0);
        if (good < 0) usleep(10000);
    }
    if (good == -ENOMEM) return skipped("too little memory may be locked");
    errno = (int)-good;
    must(good >= 0, ordinary ? "the first read" : "register");
    double end = end_time();
    for (uint64_t salt = 1; now() < end; salt++) {
        fill(content, n, salt);
        must(pwrite(fileno(f), content, n, 0) == (ssize_t)n, "pwrite");
        fill(buffer, n, 0);
        usleep(1500);
        must(carried_out(order) == (int)n, ordinary ? "read" : "read of a fixed buffer");
        check(buffer, n, salt, ordinary ? "ordinary buffer" : "fixed buffer");
        check(other, 4 * n, 7, "other memory");
    }
    return done();
}
