/* Threads that the C library makes by itself to call the program back (SIGEV_THREAD). They begin
 * with every signal blocked, and no front end sees their start. The data and the messages that they
 * read lie in armed memory. A thread of the program's with a stack and no thread-local storage
 * (clone) does the same. */
#include "hostile.h"
#include <aio.h>
#include <mqueue.h>
#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>

static size_t n = 4 * MiB;
static uint64_t *p;
static sem_t *called;
static volatile int wrong_value, blocked_still;

/* Reads all of the array, and writes to it. */
static void use(void) {
    size_t wrong = 0;
    for (size_t i = 0; i < n / 8; i += 7) wrong += p[i] != value(i, 9);
    for (size_t i = 0; i < n / 8; i += 512) ((volatile uint64_t *)p)[i] = value(i, 9);
    if (wrong) __atomic_add_fetch(&wrong_bytes, (long)(8 * wrong), __ATOMIC_RELAXED);
}

static void back(union sigval v) {
    if (v.sival_int != 4711) wrong_value = 1;
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    use();
    sem_post(called);
}

/* As above, and ends its thread by itself. */
static void back_and_exit(union sigval v) {
    back(v);
    pthread_exit(NULL);
}

static void wait_for_call(const char *what) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 60;
    int r;
    while ((r = sem_timedwait(called, &t)) && errno == EINTR) {}
    must(!r, what);
}

static struct sigevent thread_event(void (*f)(union sigval), pthread_attr_t *a) {
    struct sigevent e;
    memset(&e, 0, sizeof e);
    e.sigev_notify = SIGEV_THREAD;
    e.sigev_value.sival_int = 4711;
    e.sigev_notify_function = f;
    e.sigev_notify_attributes = a;
    return e;
}

static void timers(pthread_attr_t *a, int round) {
    struct sigevent e = thread_event(round % 2 ? back : back_and_exit, a);
    timer_t t;
    must(!timer_create(CLOCK_MONOTONIC, &e, &t), "timer_create");
    struct itimerspec soon = {{0, 0}, {0, 100000}};
    must(!timer_settime(t, 0, &soon, NULL), "timer_settime");
    wait_for_call("a timer's callback");
    must(!timer_delete(t), "timer_delete");
    /* One that repeats. */
    must(!timer_create(CLOCK_MONOTONIC, &e, &t), "timer_create");
    soon.it_interval = soon.it_value;
    must(!timer_settime(t, 0, &soon, NULL), "timer_settime");
    for (int i = 0; i < 3; i++) wait_for_call("a repeated timer's callback");
    must(!timer_delete(t), "timer_delete");
}

static void queue(pthread_attr_t *a) {
    char name[64];
    snprintf(name, sizeof name, "/homenode-notified-%d", (int)getpid());
    struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = 64};
    mqd_t q = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
    if (q == (mqd_t)-1) return;
    mq_unlink(name);
    struct sigevent e = thread_event(back, a);
    must(!mq_notify(q, &e), "mq_notify");
    must(!mq_send(q, "x", 1, 0), "mq_send");
    wait_for_call("a queue's callback");
    char text[64];
    must(mq_receive(q, text, sizeof text, NULL) == 1, "mq_receive");
    must(!mq_notify(q, &e) && !mq_notify(q, NULL), "mq_notify for nothing");
    mq_close(q);
}

/* Orders, list and buffer lie in memory of their own, which is armed as well. */
static void orders(int fd, char *memory, int round) {
    struct aiocb *o = (struct aiocb *)(memory + PAGE * 8);
    struct aiocb **list = (struct aiocb **)(memory + PAGE * 16);
    char *buffer = memory + PAGE * 32;
    memset(o, 0, sizeof *o);
    o->aio_fildes = fd;
    o->aio_buf = buffer;
    o->aio_nbytes = 64 << 10;
    o->aio_sigevent = thread_event(back, NULL);
    if (round % 3 == 0) {
        must(!aio_read(o), "aio_read");
    } else if (round % 3 == 1) {
        o->aio_lio_opcode = LIO_READ;
        o->aio_sigevent.sigev_notify = SIGEV_NONE;
        list[0] = o;
        struct sigevent e = thread_event(back, NULL);
        must(!lio_listio(LIO_NOWAIT, list, 1, &e), "lio_listio");
    } else {
        must(!aio_fsync(O_SYNC, o), "aio_fsync");
        o->aio_nbytes = 0;
    }
    wait_for_call("an order's callback");
    while (aio_error(o) == EINPROGRESS) usleep(10);
    must(!aio_error(o), "asynchronous I/O");
    ssize_t done = aio_return(o);
    must(round % 3 == 2 || done == 64 << 10, "aio_return");
    if (round % 3 != 2) check((uint64_t *)buffer, 64 << 10, 77, "what was read");
}

static void names(char *memory) {
    struct gaicb *g = (struct gaicb *)(memory + PAGE * 100), **list = (struct gaicb **)(memory + PAGE * 104);
    struct addrinfo *hints = (struct addrinfo *)(memory + PAGE * 108);
    char *name = memory + PAGE * 112;
    memset(g, 0, sizeof *g), memset(hints, 0, sizeof *hints);
    strcpy(name, "127.0.0.1");
    hints->ai_flags = AI_NUMERICHOST;
    g->ar_name = name;
    g->ar_request = hints;
    list[0] = g;
    struct sigevent e = thread_event(back, NULL);
    must(!getaddrinfo_a(GAI_NOWAIT, list, 1, &e), "getaddrinfo_a");
    wait_for_call("a name's callback");
    /* A timer that repeats may have called more often than it was waited for. */
    while (gai_error(g) == EAI_INPROGRESS) usleep(10);
    must(!gai_error(g) && g->ar_result, "gai_error");
    freeaddrinfo(g->ar_result);
}

static volatile int bare_round;

/* No thread-local storage of its own: it may call nothing. */
static int bare(void *unused) {
    (void)unused;
    use();
    __atomic_store_n(&bare_round, 1, __ATOMIC_SEQ_CST);
    __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
    return 0;
}

static void bare_thread(char *stack, size_t bytes) {
    bare_round = 0;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    must(clone(bare, stack + bytes, flags, NULL) > 0, "clone");
    while (!__atomic_load_n(&bare_round, __ATOMIC_SEQ_CST)) use();
    /* It may still be on its stack. */
    usleep(200);
}

int main(int argc, char **argv) {
    called = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(called != MAP_FAILED && !sem_init(called, 0, 0), "sem_init");
    p = malloc(n);
    fill(p, n, 9);
    char *memory = malloc(MiB), path[] = "/tmp/homenode-notified-XXXXXX";
    memset(memory, 0, MiB);
    int fd = mkstemp(path);
    must(fd >= 0 && !unlink(path), "mkstemp");
    uint64_t *text = malloc(64 << 10);
    fill(text, 64 << 10, 77);
    must(write(fd, text, 64 << 10) == 64 << 10, "write");
    size_t stack_bytes = 256 << 10;
    char *stack = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    must(stack != MAP_FAILED, "a stack");
    pthread_attr_t a;
    must(!pthread_attr_init(&a) && !pthread_attr_setstacksize(&a, 256 << 10), "attributes");
    const char *only = argc > 1 ? argv[1] : "all";
    int all = !strcmp(only, "all");
    double end = end_time();
    for (int round = 0; now() < end; round++) {
        if (all || !strcmp(only, "timers")) timers(round % 3 ? NULL : &a, round);
        if (all || !strcmp(only, "queue")) queue(NULL);
        if (all || !strcmp(only, "orders")) orders(fd, memory, round);
        if (all || !strcmp(only, "names")) names(memory);
        if (all || !strcmp(only, "bare")) bare_thread(stack, stack_bytes);
        use();
    }
    must(!wrong_value, "the callback's value");
    return done();
}
