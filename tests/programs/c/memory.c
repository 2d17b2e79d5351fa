/* Copies and fills: constant and variable sizes, overlaps, structures, and all ways to allocate. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct big { char c[700]; int n; };
struct small { long a, b, c; };

static unsigned long hash(const void *p, size_t n) {
    const unsigned char *c = p;
    unsigned long h = 1469598103934665603UL;
    for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 1099511628211UL;
    return h;
}
__attribute__((noinline)) static struct big by_value(struct big b) {
    b.n++;
    return b;
}

int main(void) {
    size_t n = 300000;
    unsigned char *p = malloc(n), *q = calloc(n, 1);
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(i * 7);
    memcpy(q, p, n);
    printf("%lx\n", hash(q, n));
    memmove(q + 3, q, n - 3);
    memmove(q, q + 100, n - 100);
    printf("%lx\n", hash(q, n));
    for (size_t s = 0; s < 300; s += 13) memcpy(q + s * 300, p + s, s);
    memcpy(q, p + 1, 1), memcpy(q + 5, p, 3), memcpy(q + 9, p, 8), memcpy(q + 20, p, 24), memcpy(q + 50, p, 250);
    memset(q + 1000, 0xa5, 24), memset(q + 2000, 0, 200), memset(q + 3000, 1, n / 2);
    printf("%lx\n", hash(q, n));
    struct big b = {{0}, 1}, c = by_value(b), *d = malloc(sizeof *d);
    *d = c;
    struct small s = {1, 2, 3}, t[9];
    for (int i = 0; i < 9; i++) t[i] = s, t[i].b = i;
    printf("%d %lx\n", d->n, hash(t, sizeof t));
    p = realloc(p, 2 * n);
    printf("%lx\n", hash(p, n));
    p = realloc(p, 10);
    void *al = NULL;
    if (posix_memalign(&al, 4096, 10000) || (uintptr_t)al % 4096) return 1;
    memset(al, 3, 10000);
    void *al2 = aligned_alloc(64, 640), *al3 = memalign(256, 1000);
    printf("%d %d\n", (int)((uintptr_t)al2 % 64), (int)((uintptr_t)al3 % 256));
    char *m = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 65536; i++) m[i] = (char)(i >> 3);
    m = mremap(m, 65536, 1 << 20, MREMAP_MAYMOVE);
    m[(1 << 20) - 1] = 1;
    printf("%lx\n", hash(m, 1 << 20));
    munmap(m, 1 << 20);
    printf("%d %d\n", malloc(SIZE_MAX / 4) == NULL, realloc(al2, SIZE_MAX / 4) == NULL);
    free(NULL), free(p), free(q), free(al), free(al2), free(al3), free(d);
    return 0;
}
