/* Threads that add to their own words all the while. Nothing may be lost. */
#include "hostile.h"

#define WORDS (4 * MiB / 8)
#define THREADS 3
static volatile uint64_t *words;
static uint64_t adds;

static void *add(void *arg) {
    size_t me = (size_t)arg;
    for (uint64_t i = 0; i < adds; i++) words[(i * 521 % (WORDS / THREADS)) * THREADS + me]++;
    return NULL;
}

int main(void) {
    adds = getenv("HOSTILE_ADDS") ? strtoull(getenv("HOSTILE_ADDS"), NULL, 10) : 3000000;
    words = calloc(WORDS, 8);
    pthread_t t[THREADS];
    for (size_t i = 0; i < THREADS; i++) must(!pthread_create(&t[i], NULL, add, (void *)i), "pthread_create");
    for (size_t i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++) sum += words[i];
    if (sum != THREADS * adds) {
        fprintf(stderr, "lost %lld of %llu\n", (long long)(THREADS * adds - sum), (unsigned long long)(THREADS * adds));
        wrong_bytes = 8;
    }
    return done();
}
