/* Sleeps by a clock of the caller's choice, C11's locks, robust and priority-inheriting mutexes,
 * things done once, and the newer system calls to sleep. All lie in a large array, all
 * contended. */
#include "hostile.h"
#include <linux/futex.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>

#define THREADS 4
#define CELLS 1024
struct cell {
    pthread_mutex_t mutex, robust, inherits;
    pthread_cond_t cond;
    pthread_rwlock_t rw;
    sem_t sem;
    mtx_t mtx;
    cnd_t cnd;
    pthread_once_t once;
    once_flag flag;
    int futex;
    uint64_t by_mutex, by_robust, by_inherits, by_rw, by_sem, by_mtx;
    char space[4096];
};
static struct cell *cells;
static size_t n_once, n_flag;
static double end;
static uint64_t rounds[THREADS];

static struct timespec in(clockid_t clock, long ns) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ns;
    if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
    return t;
}

/* What a timed call may say, but for success. */
static int late(int code) {
    if (code && code != ETIMEDOUT) {
        fprintf(stderr, "a lock by a clock: %s\n", strerror(code));
        __atomic_fetch_add(&wrong_bytes, 8, __ATOMIC_RELAXED);
    }
    return code;
}

static void slowly(volatile uint64_t *word) {
    uint64_t seen = *word;
    if (seen % 8 == 0) sched_yield();
    *word = seen + 1;
}

static void count_once(void) {
    sched_yield();
    __atomic_fetch_add(&n_once, 1, __ATOMIC_RELAXED);
}

static void count_flag(void) {
    sched_yield();
    __atomic_fetch_add(&n_flag, 1, __ATOMIC_RELAXED);
}

static void slept(long r) {
    if (r >= 0 || errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR || errno == ENOSYS) return;
    perror("futex");
    __atomic_fetch_add(&wrong_bytes, 8, __ATOMIC_RELAXED);
}

static void *work(void *arg) {
    size_t me = (size_t)arg;
    for (uint64_t i = 0; now() < end; i++, rounds[me]++) {
        struct cell *c = &cells[i * 37 % 64];
        const clockid_t clock = i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec t = in(clock, 200000000);
        if (!late(pthread_mutex_clocklock(&c->mutex, clock, &t))) {
            slowly(&c->by_mutex);
            if (i % 32 == 0) t = in(clock, 5000), late(pthread_cond_clockwait(&c->cond, &c->mutex, clock, &t));
            pthread_cond_signal(&c->cond);
            pthread_mutex_unlock(&c->mutex);
        } else {
            rounds[me]--;
            continue;
        }
        while (pthread_mutex_trylock(&c->robust)) sched_yield();
        slowly(&c->by_robust);
        pthread_mutex_unlock(&c->robust);
        must(!pthread_mutex_lock(&c->inherits), "pthread_mutex_lock");
        slowly(&c->by_inherits);
        must(!pthread_mutex_unlock(&c->inherits), "pthread_mutex_unlock");
        do t = in(clock, 100000);
        while (late(pthread_rwlock_clockrdlock(&c->rw, clock, &t)));
        pthread_rwlock_unlock(&c->rw);
        do t = in(clock, 100000);
        while (late(pthread_rwlock_clockwrlock(&c->rw, clock, &t)));
        slowly(&c->by_rw);
        pthread_rwlock_unlock(&c->rw);
        do t = in(clock, 100000);
        while (sem_clockwait(&c->sem, clock, &t) && (late(errno) || 1));
        slowly(&c->by_sem);
        sem_post(&c->sem);
        if (i % 2) {
            must(mtx_lock(&c->mtx) == thrd_success, "mtx_lock");
        } else {
            int got;
            do t = in(CLOCK_REALTIME, 100000), got = mtx_timedlock(&c->mtx, &t);
            while (got == thrd_timedout);
            must(got == thrd_success, "mtx_timedlock");
        }
        slowly(&c->by_mtx);
        if (i % 32 == 1) {
            t = in(CLOCK_REALTIME, 5000);
            must(cnd_timedwait(&c->cnd, &c->mtx, &t) != thrd_error, "cnd_timedwait");
        }
        cnd_signal(&c->cnd);
        mtx_unlock(&c->mtx);
        struct cell *o = &cells[(i * 4 + me) / 4 % CELLS];
        must(!pthread_once(&o->once, count_once), "pthread_once");
        call_once(&o->flag, count_flag);
        if (i % 16 == 0) {
            t = in(CLOCK_MONOTONIC, 5000);
            struct futex_waitv two[2] = {
                {.uaddr = (uintptr_t)&c->futex, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
                {.uaddr = (uintptr_t)&o->futex, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
            };
            slept(syscall(SYS_futex_waitv, two, &o->futex == &c->futex ? 1 : 2, 0, &t, CLOCK_MONOTONIC));
        }
    }
    return NULL;
}

/* Dies with a robust mutex locked; the next one is told. */
static void *dies(void *arg) {
    pthread_mutex_trylock(arg);
    usleep(3000);
    return NULL;
}

int main(void) {
    cells = calloc(CELLS, sizeof *cells);
    pthread_mutexattr_t robust, inherits;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_init(&inherits);
    pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
    for (size_t i = 0; i < CELLS; i++) {
        pthread_mutex_init(&cells[i].mutex, NULL);
        pthread_mutex_init(&cells[i].robust, &robust);
        pthread_mutex_init(&cells[i].inherits, &inherits);
        pthread_cond_init(&cells[i].cond, NULL);
        pthread_rwlock_init(&cells[i].rw, NULL);
        sem_init(&cells[i].sem, 0, 1);
        mtx_init(&cells[i].mtx, mtx_timed);
        cnd_init(&cells[i].cnd);
    }
    end = end_time();
    pthread_t t[THREADS], dead;
    for (size_t i = 0; i < THREADS; i++) must(!pthread_create(&t[i], NULL, work, (void *)i), "pthread_create");
    for (size_t i = 0; i < 64; i++) {
        /* No others use these. */
        struct cell *c = &cells[CELLS - 1 - i * 8];
        must(!pthread_create(&dead, NULL, dies, &c->robust), "pthread_create");
        pthread_join(dead, NULL);
        must(pthread_mutex_lock(&c->robust) == EOWNERDEAD && !pthread_mutex_consistent(&c->robust), "robust mutex");
        pthread_mutex_unlock(&c->robust);
    }
    uint64_t all = 0, counted[6] = {0};
    for (size_t i = 0; i < THREADS; i++) pthread_join(t[i], NULL), all += rounds[i];
    for (size_t i = 0; i < CELLS; i++) {
        struct cell *c = &cells[i];
        const uint64_t of[6] = {c->by_mutex, c->by_robust, c->by_inherits, c->by_rw, c->by_sem, c->by_mtx};
        for (int k = 0; k < 6; k++) counted[k] += of[k];
    }
    for (int k = 0; k < 6; k++)
        if (counted[k] != all) wrong_bytes += 8, fprintf(stderr, "kind %d: %ld of %ld\n", k, (long)counted[k], (long)all);
    if (n_once > CELLS || n_once != n_flag) wrong_bytes += 8, fprintf(stderr, "once: %ld, %ld\n", (long)n_once, (long)n_flag);
    return done();
}
