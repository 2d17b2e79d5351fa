/* An allocator of the program's own that maps memory with its lock held: what maps memory must not
 * wait for who allocates.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "hostile.h"

#include <stddef.h>
#include <string.h>

enum { CHUNK = 1 << 20, BIG = 64 << 10, HEAD = 64, PAGE_BYTES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *chunk;
static size_t left;

/* Before each block: its bytes, and those of its mapping if it has one. */
struct head {
    size_t bytes, mapping;
};

static struct head *head(void *p) { return (struct head *)((char *)p - HEAD); }

static char *map(size_t bytes) {
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return m == MAP_FAILED ? NULL : m;
}

void *malloc(size_t bytes) {
    size_t need = (bytes + HEAD + 63) / 64 * 64, mapping = 0;
    char *at;
    pthread_mutex_lock(&lock);
    if (need >= BIG) {
        mapping = (need + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        at = map(mapping);
    } else {
        if (left < need) {
            chunk = map(CHUNK);
            left = chunk ? CHUNK : 0;
        }
        at = left >= need ? chunk : NULL;
        if (at) {
            chunk += need;
            left -= need;
        }
    }
    pthread_mutex_unlock(&lock);
    if (!at) return NULL;
    *(struct head *)at = (struct head){bytes, mapping};
    return at + HEAD;
}

void free(void *p) {
    if (!p || !head(p)->mapping) return;
    pthread_mutex_lock(&lock);
    munmap(head(p), head(p)->mapping);
    pthread_mutex_unlock(&lock);
}

void *calloc(size_t n, size_t each) {
    /* Fresh memory is zero, and none is used twice. */
    return each && n > SIZE_MAX / each ? NULL : malloc(n * each);
}

void *realloc(void *old, size_t bytes) {
    void *new = malloc(bytes);
    if (old && new) {
        memcpy(new, old, head(old)->bytes < bytes ? head(old)->bytes : bytes);
        free(old);
    }
    return new;
}
