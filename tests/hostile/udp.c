/* Datagrams received into memory that may be armed: none is lost but for want of room. */
#include "hostile.h"
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/socket.h>

int main(void) {
    size_t size = 8 << 10, slots = 256;
    char *out = malloc(size * slots), *in = malloc(size * slots);
    fill((uint64_t *)out, size * slots, 4);
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    if (a < 0 || bind(a, (struct sockaddr *)&at, sizeof at) || getsockname(a, (struct sockaddr *)&at, &len))
        return skipped("no loop-back network");
    double end = end_time();
    for (size_t i = 0; now() < end; i++) {
        char *from = out + i % slots * size, *to = in + (i * 7) % slots * size;
        must(sendto(b, from, size, 0, (struct sockaddr *)&at, sizeof at) == (ssize_t)size, "sendto");
        if (i % 16 == 0) usleep(500);
        must(recv(a, to, size, 0) == (ssize_t)size, "recv");
        if (memcmp(from, to, size)) wrong_bytes += (long)size, fprintf(stderr, "datagram %zu is wrong\n", i);
    }
    return done();
}
