/* Contended locks inside a large array, and condition variables, semaphores, read-write locks,
 * barriers and futexes. */
#include "hostile.h"
#include <linux/futex.h>
#include <semaphore.h>
#include <sys/syscall.h>

#define THREADS 4
struct cell {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_rwlock_t rw;
    sem_t sem;
    int futex;
    uint64_t locked, written;
    char space[4096];
};
static struct cell *cells;
static size_t n_cells = 1024;
static uint64_t rounds = 4000;
static pthread_barrier_t *barrier;

static void *work(void *arg) {
    size_t me = (size_t)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        struct cell *c = &cells[i * 37 % 64];
        pthread_mutex_lock(&c->mutex);
        c->locked++;
        if (i % 64 == me) sched_yield();
        if (i % 128 == 0) {
            struct timespec t;
            clock_gettime(CLOCK_REALTIME, &t);
            t.tv_nsec += 100000;
            if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
            pthread_cond_timedwait(&c->cond, &c->mutex, &t);
        }
        pthread_cond_signal(&c->cond);
        pthread_mutex_unlock(&c->mutex);
        sem_wait(&c->sem);
        sem_post(&c->sem);
        pthread_rwlock_wrlock(&c->rw);
        c->written++;
        pthread_rwlock_unlock(&c->rw);
        if (i % 256 == 0) pthread_barrier_wait(barrier);
        struct timespec moment = {0, 20000};
        long r = i % 16 ? 0 : syscall(SYS_futex, &c->futex, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0);
        if (r < 0 && errno != ETIMEDOUT && errno != EAGAIN && errno != EINTR) {
            perror("futex");
            wrong_bytes++;
        }
    }
    return NULL;
}

int main(void) {
    cells = calloc(n_cells, sizeof *cells);
    for (size_t i = 0; i < n_cells; i++) {
        pthread_mutex_init(&cells[i].mutex, NULL);
        pthread_cond_init(&cells[i].cond, NULL);
        pthread_rwlock_init(&cells[i].rw, NULL);
        sem_init(&cells[i].sem, 0, 1);
    }
    barrier = (pthread_barrier_t *)cells[n_cells / 2].space;
    must(!pthread_barrier_init(barrier, NULL, THREADS), "pthread_barrier_init");
    pthread_t t[THREADS];
    for (size_t i = 0; i < THREADS; i++) must(!pthread_create(&t[i], NULL, work, (void *)i), "pthread_create");
    for (size_t i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < n_cells; i++) sum += cells[i].locked + cells[i].written;
    if (sum != 2 * THREADS * rounds) wrong_bytes += 8, fprintf(stderr, "lost %ld\n", (long)(2 * THREADS * rounds - sum));
    return done();
}
