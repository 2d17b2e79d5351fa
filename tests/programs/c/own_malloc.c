/* A program with its own malloc: the recorder must call that one. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static _Alignas(64) char arena[1 << 22];
static size_t used;
static int calls;

void *malloc(size_t n) {
    size_t at = __atomic_fetch_add(&used, (n + 63 + 64) & ~(size_t)63, __ATOMIC_RELAXED);
    if (at + n + 64 > sizeof arena) return NULL;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    *(size_t *)(arena + at) = n;
    return arena + at + 64;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) {
    void *p = malloc(n * m);
    if (p) memset(p, 0, n * m);
    return p;
}
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p && q) {
        size_t old = *(size_t *)((char *)p - 64);
        memcpy(q, p, old < n ? old : n);
    }
    return q;
}
void *aligned_alloc(size_t a, size_t n) { return a <= 64 ? malloc(n) : NULL; }

void *make(size_t n);
int main(void) {
    char *p = make(1000), *q;
    memset(p, 5, 1000);
    q = realloc(p, 2000);
    printf("%d %d %d\n", p >= arena && p < arena + sizeof arena, q >= arena && q < arena + sizeof arena && q[999] == 5, calls >= 2);
    free(q);
    return 0;
}
__attribute__((noinline)) void *make(size_t n) {
    void *volatile p = malloc(n);
    return p;
}
