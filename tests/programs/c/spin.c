/* A thread spins on an atomic flag; a token goes round; a ticket lock. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define T 3
static atomic_int token, next_ticket, serving;
static volatile int old_style;
static long order, total, plain;

static void *work(void *arg) {
    int id = (int)(long)arg;
    for (int round = 0; round < 50; round++) {
        while (atomic_load_explicit(&token, memory_order_acquire) != id) sched_yield();
        order = (order * 7 + id + 1) % 1000003;
        atomic_store_explicit(&token, (id + 1) % T, memory_order_release);
        int ticket = atomic_fetch_add(&next_ticket, 1);
        while (atomic_load(&serving) != ticket) sched_yield();
        total += round;
        atomic_fetch_add(&serving, 1);
    }
    return NULL;
}
static void *setter(void *arg) {
    plain = 17;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    old_style = 1;
    return arg;
}

int main(void) {
    pthread_t t[T];
    for (long i = 0; i < T; i++) pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < T; i++) pthread_join(t[i], NULL);
    pthread_create(&t[0], NULL, setter, NULL);
    while (!old_style) sched_yield();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    printf("%ld %ld %ld\n", order, total, plain);
    pthread_join(t[0], NULL);
    return 0;
}
