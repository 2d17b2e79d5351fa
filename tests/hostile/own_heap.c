/* An allocator that brings glibc's inner names, too: nobody but the program may call them. */
#include "hostile.h"

static void nobody(const char *name) {
    write(2, name, strlen(name));
    abort();
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *p);

void *__libc_malloc(size_t bytes) { return nobody("__libc_malloc\n"), (void *)bytes; }
void *__libc_calloc(size_t n, size_t bytes) { return nobody("__libc_calloc\n"), (void *)(n * bytes); }
void *__libc_realloc(void *p, size_t bytes) { return nobody("__libc_realloc\n"), (char *)p + bytes; }
void *__libc_memalign(size_t align, size_t bytes) { return nobody("__libc_memalign\n"), (void *)(align + bytes); }
void __libc_free(void *p) { nobody(p ? "__libc_free\n" : "__libc_free of null\n"); }

int main(void) {
    size_t n = 2 * MiB;
    uint64_t *p = malloc(n);
    double end = end_time();
    for (uint64_t round = 0; now() < end; round++) {
        fill(p, n, round);
        usleep(1500);
        check(p, n, round, "memory");
    }
    free(p);
    return done();
}
