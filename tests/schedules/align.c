/* align: every function that allocates, with small and large sizes; what a program may rely on.
 *
 * Prints the distance of each large allocation from the page before it. Fails where contents are
 * lost, zeros are missing, or a size is too small.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE (200000)

static void check(int holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        exit(1);
    }
}

static void use(const char *what, unsigned char *p, size_t bytes, int zero)
{
    check(p != NULL, what);
    check(malloc_usable_size(p) >= bytes, "malloc_usable_size");
    for (size_t i = 0; zero && i < bytes; i++)
        check(p[i] == 0, "zeros");
    memset(p, 0x5a, bytes);
    if (bytes >= LARGE)
        printf("%s %u\n", what, (unsigned)((uintptr_t)p % 4096));
    unsigned char *q = realloc(p, 3 * bytes);
    check(q != NULL, "realloc");
    for (size_t i = 0; i < bytes; i++)
        check(q[i] == 0x5a, "contents");
    memset(q, 1, 3 * bytes);
    q = realloc(q, bytes / 2);
    check(q[0] == 1 && q[bytes / 2 - 1] == 1, "contents of less");
    free(q);
}

int main(void)
{
    for (int round = 0; round < 3; round++)
        for (size_t bytes = 100; bytes <= LARGE; bytes *= 2000) {
            void *p = NULL;
            use("malloc", malloc(bytes), bytes, 0);
            use("calloc", calloc(bytes / 10, 10), bytes, 1);
            use("realloc", realloc(NULL, bytes), bytes, 0);
            check(posix_memalign(&p, 64, bytes) == 0 && (uintptr_t)p % 64 == 0, "posix_memalign");
            use("posix_memalign", p, bytes, 0);
            p = aligned_alloc(32, bytes / 32 * 32 + 32);
            check((uintptr_t)p % 32 == 0, "aligned_alloc");
            use("aligned_alloc", p, bytes, 0);
            p = memalign(8192, bytes);
            check((uintptr_t)p % 8192 == 0, "memalign");
            use("memalign", p, bytes, 0);
        }
    void *p = NULL;
    check(posix_memalign(&p, 24, LARGE) != 0, "an alignment that is no power of two");
    check(calloc(SIZE_MAX / 2, 4) == NULL, "calloc of more than memory");
    free(NULL);
    /* A recycled chunk is not zero: calloc must say so. */
    for (int i = 0; i < 100; i++) {
        unsigned char *a = malloc(LARGE), *b;
        memset(a, 0xff, LARGE);
        free(a);
        b = calloc(1, LARGE);
        for (size_t j = 0; j < LARGE; j++)
            check(b[j] == 0, "zeros of a recycled chunk");
        free(b);
    }
    puts("done");
    return 0;
}
