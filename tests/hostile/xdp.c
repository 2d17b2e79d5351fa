/* Packets of AF_XDP: the kernel has pinned the pages that it sends, and a copy of a page is another
 * page. The calls are raw system calls, or the C library's with "by-call". Packets go over the
 * loopback, and a socket of the usual kind receives them. */
#include "hostile.h"
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* For local experiments (IEEE 802). */
enum { PROTOCOL = 0x88b5, FRAMES = 64, WORDS = 128 };

static int by_call;

static long raw(long n, long a, long b, long c, long d, long e) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return r;
}

static int make(int family, int kind, int protocol) {
    return by_call ? socket(family, kind, protocol) : (int)raw(SYS_socket, family, kind, protocol, 0, 0);
}

static int set(int fd, int name, const void *p, size_t n) {
    if (by_call) return setsockopt(fd, SOL_XDP, name, p, (socklen_t)n);
    long r = raw(SYS_setsockopt, fd, SOL_XDP, name, (long)p, (long)n);
    errno = (int)-r;
    return r ? -1 : 0;
}

/* A ring of descriptors of so many bytes that the kernel shares. */
static char *ring(int fd, struct xdp_ring_offset at, size_t bytes, off_t which) {
    void *p = mmap(NULL, at.desc + FRAMES * bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, which);
    must(p != MAP_FAILED, "ring");
    return p;
}

int main(int argc, char **argv) {
    by_call = argc > 1 && !strcmp(argv[1], "by-call");
    size_t n = FRAMES * PAGE;
    char *memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *other = malloc(8 * n);
    must(memory != MAP_FAILED && other, "memory");
    fill((uint64_t *)(void *)memory, n, 1);
    fill(other, 8 * n, 7);
    wait_until_armed(memory, n, "the frames, before there is a socket");
    /* A second time: the first is over then. */
    check((uint64_t *)(void *)memory, n, 1, "armed");
    wait_until_armed(memory, n, "the frames, before there is a socket");
    int listener = socket(AF_PACKET, SOCK_RAW, htons(PROTOCOL));
    int fd = make(AF_XDP, SOCK_RAW, 0);
    unsigned lo = if_nametoindex("lo");
    if (listener < 0 || fd < 0 || !lo) return skipped("no AF_XDP, or no right to it");
    struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(PROTOCOL), .sll_ifindex = (int)lo};
    must(!bind(listener, (struct sockaddr *)&here, sizeof here), "bind");
    int size = FRAMES;
    struct xdp_umem_reg area = {.addr = (uintptr_t)memory, .len = n, .chunk_size = (uint32_t)PAGE};
    int registered = -1;
    /* What was armed before the socket was there may refuse once; never silently. */
    for (int i = 0; i < 100 && registered < 0; i++) {
        fill((uint64_t *)(void *)memory, n, 1);
        registered = set(fd, XDP_UMEM_REG, &area, sizeof area);
        if (registered < 0) usleep(10000);
    }
    must(!registered, "register");
    must(!set(fd, XDP_UMEM_FILL_RING, &size, sizeof size) && !set(fd, XDP_UMEM_COMPLETION_RING, &size, sizeof size) &&
             !set(fd, XDP_TX_RING, &size, sizeof size),
         "rings");
    struct xdp_mmap_offsets at;
    socklen_t length = sizeof at;
    must(!getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length), "offsets");
    char *tx = ring(fd, at.tx, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING);
    char *sent = ring(fd, at.cr, sizeof(uint64_t), (off_t)XDP_UMEM_PGOFF_COMPLETION_RING);
    struct sockaddr_xdp out = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY, .sxdp_ifindex = lo};
    if (bind(fd, (struct sockaddr *)&out, sizeof out)) return skipped("no AF_XDP on the loopback");
    struct timeval patience = {.tv_sec = 5};
    must(!setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), "patience");
    unsigned *head = (unsigned *)(tx + at.tx.producer), *done_head = (unsigned *)(sent + at.cr.consumer);
    double end = end_time();
    for (uint64_t salt = 1; now() < end; salt++) {
        unsigned slot = (unsigned)salt % FRAMES;
        char *frame = memory + slot * PAGE;
        struct ethhdr *head_of = (struct ethhdr *)(void *)frame;
        *head_of = (struct ethhdr){.h_proto = htons(PROTOCOL)};
        usleep(1500);
        /* A word's alignment behind the header. */
        fill((uint64_t *)(void *)(frame + 16), WORDS * 8, salt);
        struct xdp_desc *d = (struct xdp_desc *)(void *)(tx + at.tx.desc) + *head % FRAMES;
        *d = (struct xdp_desc){.addr = slot * PAGE, .len = 16 + WORDS * 8};
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
        must(sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0 || errno == EAGAIN || errno == EBUSY, "sendto");
        uint64_t got[2 + WORDS];
        must(recv(listener, got, sizeof got, 0) == (ssize_t)sizeof got, "recv");
        check(got + 2, WORDS * 8, salt, "a packet");
        __atomic_store_n(done_head, *done_head + 1, __ATOMIC_RELEASE);
        check(other + salt % 8 * n / 8, n, 7 + salt % 8 * n / 8, "other memory");
    }
    return done();
}
