/* Threads that are cancelled at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS), in the middle of
 * memory accesses, of atomic ones, of unaligned ones and of nothing at all. Built with homenode's
 * compilers, each access is a call. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 60, WORDS = 1 << 18 };

static uint64_t *p;
static atomic_uint_fast64_t counter;
static int cleaned;

static void clean(void *unused) {
    (void)unused;
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}

struct __attribute__((packed)) crooked {
    char c;
    uint64_t v;
};

static void *works(void *how) {
    int old;
    pthread_cleanup_push(clean, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    switch ((intptr_t)how) {
    case 0:
        for (size_t i = 0;; i++) p[i * 9 % WORDS] += i;
    case 1:
        for (;;) atomic_fetch_add(&counter, 1);
    case 2:
        for (size_t i = 0;; i++) ((volatile struct crooked *)p)[i % (WORDS / 2)].v = i;
    case 3:
        for (;;) ((volatile uint64_t *)p)[7]++;
    case 4:
        for (size_t i = 0;; i++) memset(p + i % 1000 * 64, (int)i, 4096);
    default:
        for (;;) __asm__ volatile("");
    }
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    p = calloc(WORDS, sizeof *p);
    for (intptr_t round = 0; round < ROUNDS; round++) {
        pthread_t t;
        void *result = NULL;
        if (pthread_create(&t, NULL, works, (void *)(round % 6))) return 1;
        usleep((useconds_t)(2000 + 137 * round));
        if (pthread_cancel(t) || pthread_join(t, &result) || result != PTHREAD_CANCELED) return 2;
    }
    if (cleaned != ROUNDS) return 3;
    puts("ok");
    return 0;
}
