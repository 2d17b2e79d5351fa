/* Datagrams received into memory that may be armed, one or several at a time, also after a long
 * wait. None is lost, except for lack of room. */
#include "hostile.h"
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/socket.h>

enum { SIZE = 8 << 10, AT_ONCE = 4 };

static int a, b;
static struct sockaddr_in at = {.sin_family = AF_INET};

static void send_one(const char *from) {
    must(sendto(b, from, SIZE, 0, (struct sockaddr *)&at, sizeof at) == SIZE, "sendto");
}

static void compare(const char *what, const char *have, const char *want, size_t bytes) {
    if (!memcmp(have, want, bytes)) return;
    wrong_bytes += (long)bytes;
    fprintf(stderr, "%s is wrong\n", what);
}

/* One in two pieces, by recvmsg; then several by recvmmsg. The headers lie in memory that may be
 * armed, too. */
static void messages(const char *out, char *in, char *headers) {
    struct mmsghdr *all = (struct mmsghdr *)(void *)headers;
    struct iovec *pieces = (struct iovec *)(void *)(headers + PAGE);
    struct sockaddr_in *who = (struct sockaddr_in *)(void *)(headers + 2 * PAGE);
    memset(headers, 0, 4 * PAGE);
    memset(in, 0, AT_ONCE * SIZE);
    pieces[0] = (struct iovec){in, SIZE / 4};
    pieces[1] = (struct iovec){in + 2 * SIZE, SIZE};
    all[0].msg_hdr = (struct msghdr){.msg_iov = pieces, .msg_iovlen = 2, .msg_name = who, .msg_namelen = sizeof *who};
    send_one(out);
    usleep(1500);
    must(recvmsg(a, &all[0].msg_hdr, 0) == SIZE, "recvmsg");
    compare("recvmsg, first piece", in, out, SIZE / 4);
    compare("recvmsg, second piece", in + 2 * SIZE, out + SIZE / 4, SIZE - SIZE / 4);
    must(who->sin_family == AF_INET && who->sin_addr.s_addr == at.sin_addr.s_addr, "recvmsg's sender");
    *who = at;
    for (int i = 0; i < AT_ONCE; i++) {
        pieces[i] = (struct iovec){(char *)(uintptr_t)out + i * SIZE, SIZE};
        all[i] = (struct mmsghdr){
            .msg_hdr = {.msg_iov = pieces + i, .msg_iovlen = 1, .msg_name = who, .msg_namelen = sizeof *who}};
    }
    usleep(1500);
    must(sendmmsg(b, all, AT_ONCE, 0) == AT_ONCE, "sendmmsg");
    struct timespec *wait = (struct timespec *)(void *)(headers + 3 * PAGE);
    *wait = (struct timespec){30, 0};
    for (int i = 0; i < AT_ONCE; i++) {
        pieces[i] = (struct iovec){in + i * SIZE, SIZE};
        all[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = pieces + i, .msg_iovlen = 1}};
    }
    usleep(1500);
    must(recvmmsg(a, all, AT_ONCE, 0, wait) == AT_ONCE, "recvmmsg");
    for (int i = 0; i < AT_ONCE; i++) must(all[i].msg_len == SIZE, "recvmmsg's length");
    compare("recvmmsg", in, out, AT_ONCE * SIZE);
}

static int by_message;

static void *waiter(void *in) {
    struct iovec piece = {in, SIZE};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
    ssize_t got = by_message ? recvmsg(a, &header, 0) : recv(a, in, SIZE, 0);
    must(got == SIZE, "a receive that has waited");
    return NULL;
}

/* A receive that waits in the kernel while arming goes on. */
static void late(const char *out, char *in) {
    pthread_t t;
    memset(in, 0, SIZE);
    by_message = !by_message;
    must(!pthread_create(&t, NULL, waiter, in), "pthread_create");
    usleep(5000);
    send_one(out);
    pthread_join(t, NULL);
    compare("a receive that has waited", in, out, SIZE);
}

int main(void) {
    size_t size = SIZE, slots = 256;
    char *headers = malloc(2 * MiB);
    must(headers != NULL, "malloc");
    memset(headers, 0, 2 * MiB);
    char *out = malloc(size * slots), *in = malloc(size * slots);
    fill((uint64_t *)out, size * slots, 4);
    a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof at;
    if (a < 0 || bind(a, (struct sockaddr *)&at, sizeof at) || getsockname(a, (struct sockaddr *)&at, &len))
        return skipped("no loop-back network");
    double end = end_time();
    for (size_t i = 0; now() < end; i++) {
        char *from = out + i % slots * size, *to = in + (i * 7) % slots * size;
        send_one(from);
        if (i % 16 == 0) usleep(500);
        must(recv(a, to, size, 0) == (ssize_t)size, "recv");
        if (memcmp(from, to, size)) wrong_bytes += (long)size, fprintf(stderr, "datagram %zu is wrong\n", i);
        if (i % 64) continue;
        size_t slot = i / 64 * 5 % (slots - AT_ONCE);
        messages(out + slot * size, in + slot * size, headers + i / 64 * 3 % 500 * PAGE);
        late(out + slot * size, in + (slots - 1 - slot) * size);
    }
    return done();
}
