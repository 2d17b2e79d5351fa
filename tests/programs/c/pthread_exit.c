/* Ways in which a thread ends: return, pthread_exit, cancellation (which unwinds its stack),
 * detached, and the main thread by pthread_exit while another one goes on. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int cleaned, pipes[2];
static volatile long x[64];
static void clean(void *p) { cleaned += *(int *)p; }

static void *by_exit(void *arg) {
    int v = 5;
    pthread_cleanup_push(clean, &v);
    for (int i = 0; i < 64; i++) x[i] = i;
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *until_cancelled(void *arg) {
    int v = 7;
    char c;
    pthread_cleanup_push(clean, &v);
    while (read(pipes[0], &c, 1) != 1) {
    }
    pthread_cleanup_pop(0);
    return arg;
}
static void *last(void *arg) {
    pthread_t main_thread = *(pthread_t *)arg;
    pthread_join(main_thread, NULL);
    printf("last\n");
    return NULL;
}

int main(void) {
    static pthread_t t, me;
    void *r;
    if (pipe(pipes)) return 1;
    pthread_create(&t, NULL, by_exit, (void *)9L);
    pthread_join(t, &r);
    printf("exit %ld cleaned %d\n", (long)r, cleaned);
    pthread_create(&t, NULL, until_cancelled, NULL);
    pthread_cancel(t);
    pthread_join(t, &r);
    printf("cancelled %d cleaned %d\n", r == PTHREAD_CANCELED, cleaned);
    me = pthread_self();
    pthread_create(&t, NULL, last, &me);
    pthread_detach(t);
    pthread_exit(NULL);
}
