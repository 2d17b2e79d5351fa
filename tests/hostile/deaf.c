/* Threads that block every signal by raw system calls, unseen: an armed page would end the process
 * by SIGBUS. The first thread does so, too. Later all unblock the signals again. */
#include "hostile.h"
#include <signal.h>
#include <sys/syscall.h>

enum { THREADS = 3 };

static size_t n = 4 * MiB;
static uint64_t *volatile p;
static pthread_barrier_t barrier;
static double half, end;

static void mask(unsigned long set) {
    long r;
    register long r10 __asm__("r10") = 8;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "0"(SYS_rt_sigprocmask), "D"(SIG_SETMASK), "S"(&set), "d"(0L), "r"(r10)
                     : "rcx", "r11", "memory");
    must(!r, "rt_sigprocmask");
}

static void use(double until) {
    while (now() < until) check(p, n, 5, "memory");
}

static void *works(void *unused) {
    mask(~0ul);
    pthread_barrier_wait(&barrier);
    /* The memory is there now. */
    pthread_barrier_wait(&barrier);
    use(half);
    mask(0);
    use(end);
    return unused;
}

int main(void) {
    pthread_t t[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) must(!pthread_create(&t[i], NULL, works, NULL), "pthread_create");
    pthread_barrier_wait(&barrier);
    end = end_time();
    half = now() + (end - now()) / 2;
    p = malloc(n);
    fill(p, n, 5);
    pthread_barrier_wait(&barrier);
    use(end);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    return done();
}
