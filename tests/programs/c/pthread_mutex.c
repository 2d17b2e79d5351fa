/* Threads, mutex (lock, trylock), condition variable, barrier, rwlock, once, keys. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define T 4
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_key_t key;
static long counter, tried, arrived, onces, destroyed, table[1024];

static void init(void) { onces++; }
static void destroy(void *p) {
    __atomic_fetch_add(&destroyed, (long)*(int *)p, __ATOMIC_RELAXED);
    free(p);
}

static void *work(void *arg) {
    long id = (long)arg, local = 0;
    pthread_once(&once, init);
    int *mine = malloc(sizeof *mine);
    *mine = (int)id + 1;
    pthread_setspecific(key, mine);
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        counter += i;
        pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < 200;) {
        if (pthread_mutex_trylock(&mutex) == 0) {
            tried++;
            i++;
            pthread_mutex_unlock(&mutex);
        }
    }
    pthread_barrier_wait(&barrier);
    pthread_rwlock_wrlock(&rw);
    for (int i = 0; i < 1024; i++) table[i] += id;
    pthread_rwlock_unlock(&rw);
    pthread_rwlock_rdlock(&rw);
    for (int i = 0; i < 1024; i++) local += table[i] >= 0;
    pthread_rwlock_unlock(&rw);
    pthread_mutex_lock(&mutex);
    arrived++;
    pthread_cond_broadcast(&cond);
    while (arrived < T) pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return (void *)(local + id);
}

int main(void) {
    pthread_t thread[T];
    pthread_key_create(&key, destroy);
    pthread_barrier_init(&barrier, NULL, T);
    for (long i = 0; i < T; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)i)) return 1;
    long results = 0;
    for (int i = 0; i < T; i++) {
        void *r;
        pthread_join(thread[i], &r);
        results += (long)r;
    }
    printf("%ld %ld %ld %ld %ld %ld %ld\n", counter, tried, arrived, onces, destroyed, table[1000], results);
    return 0;
}
