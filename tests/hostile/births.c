/* Every way to make a thread or a process that runs the program's code, and every way in which such
 * a thread can end. The ways are the product of two tables, as far as they go together. Each new
 * thread reads and writes memory that may be armed. A run without homenode says what is right.
 * argv[1]: MAKER/END, or --list. HOSTILE_ARMED: memory is armed before. */
#include "hostile.h"
#include <aio.h>
#include <limits.h>
#include <mqueue.h>
#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <threads.h>

static size_t n = 2 * MiB;
static uint64_t *p;
static long threads_made;
static sem_t *used;

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(99);
}

/* Reads and writes the array: a part of its own would not be armed for all. */
static void use(void) {
    long wrong = 0;
    for (size_t i = 0; i < n / 8; i += 61) wrong += p[i] != value(i, 5);
    for (size_t i = 0; i < n / 8; i += 509) ((volatile uint64_t *)p)[i] = value(i, 5);
    __atomic_fetch_add(&wrong_bytes, 8 * wrong, __ATOMIC_RELAXED);
    __atomic_fetch_add(&threads_made, 1, __ATOMIC_RELAXED);
}

/* How the thread ends. ------------------------------------------------------------------------ */

static void returns(void) {}
static void exits(void) { pthread_exit((void *)7); }
static void exits_c11(void) { thrd_exit(7); }
static void by_call(void) { syscall(SYS_exit, 0); }
static void waits(void) {
    for (;;) pause();
}
static void computes(void) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (volatile uint64_t *at = p;; at = at < p + n / 8 - 64 ? at + 64 : p) (void)*at;
}

enum { FOR_ALL = 1, IS_CANCELLED = 2 };
static const struct end { const char *name; void (*f)(void); int flags; } ends[] = {
    {"returns", returns, FOR_ALL}, {"exits", exits, FOR_ALL}, {"exits-c11", exits_c11, 0}, {"by-call", by_call, 0},
    {"cancelled", waits, IS_CANCELLED}, {"cancelled-at-once", computes, IS_CANCELLED},
};
static const struct end *the_end;

static void *body(void *unused) {
    use();
    sem_post(used);
    the_end->f();
    return unused;
}

static int body_c11(void *unused) {
    body(unused);
    return 3;
}

static void body_of_callback(union sigval v) { body(v.sival_ptr); }

static void wait_for_use(void) {
    while (sem_wait(used) && errno == EINTR) {}
}

/* Who makes it. ------------------------------------------------------------------------------- */

static void finish(pthread_t t, int joins) {
    wait_for_use();
    if (the_end->flags & IS_CANCELLED) pthread_cancel(t);
    void *result = NULL;
    if (joins) must(!pthread_join(t, &result), "pthread_join");
    if (joins && the_end->flags & IS_CANCELLED) say(result == PTHREAD_CANCELED ? "cancelled\n" : "not cancelled\n");
}

static void make_with(pthread_attr_t *a, int joins) {
    pthread_t t;
    int r = pthread_create(&t, a, body, NULL);
    if (r) say("refused\n"), exit(r);
    finish(t, joins);
}

#define WITH(name, joins, ...) \
    static void name(void) { \
        pthread_attr_t a; \
        pthread_attr_init(&a); \
        __VA_ARGS__; \
        make_with(&a, joins); \
        pthread_attr_destroy(&a); \
    }
static void posix(void) { make_with(NULL, 1); }
WITH(detached, 0, pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED))
WITH(small_stack, 1, pthread_attr_setstacksize(&a, (size_t)PTHREAD_STACK_MIN))
WITH(large_stack, 1, pthread_attr_setstacksize(&a, 64 * MiB))
WITH(no_guard, 1, pthread_attr_setguardsize(&a, 0))
WITH(large_guard, 1, pthread_attr_setguardsize(&a, MiB))
/* The stack lies in the array's memory's kin: it may be armed before the thread runs. */
WITH(stack_of_heap, 1, pthread_attr_setstack(&a, memset(aligned_alloc(PAGE, MiB), 0, MiB), MiB))
WITH(stack_of_mapping, 1,
     pthread_attr_setstack(&a, mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MiB))
WITH(own_order, 1, struct sched_param s = {0}; pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
     pthread_attr_setschedpolicy(&a, SCHED_BATCH); pthread_attr_setschedparam(&a, &s))
WITH(one_cpu, 1, cpu_set_t c; CPU_ZERO(&c); CPU_SET(0, &c); pthread_attr_setaffinity_np(&a, sizeof c, &c))
WITH(deaf, 1, sigset_t all; sigfillset(&all); pthread_attr_setsigmask_np(&a, &all))
WITH(system_scope, 1, pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM))

static void inherits_deafness(void) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    make_with(NULL, 1);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
static void c11(void) {
    thrd_t t;
    if (thrd_create(&t, body_c11, NULL) != thrd_success) say("refused\n"), exit(1);
    finish(t, 1);
}
static void many(void) {
    enum { N = 16 };
    pthread_t t[N];
    for (int i = 0; i < N; i++) must(!pthread_create(&t[i], NULL, body, NULL), "pthread_create");
    for (int i = 0; i < N; i++) wait_for_use();
    for (int i = 0; i < N; i++) {
        if (the_end->flags & IS_CANCELLED) pthread_cancel(t[i]);
        pthread_join(t[i], NULL);
    }
}
static void one_after_another(void) {
    for (int i = 0; i < 100; i++) make_with(NULL, 1);
}
static void *makes(void *unused) {
    make_with(NULL, 1);
    return unused;
}
static void by_a_thread(void) {
    pthread_t t;
    must(!pthread_create(&t, NULL, makes, NULL), "pthread_create");
    pthread_join(t, NULL);
}
static void in_handler(int s) { (void)s; make_with(NULL, 1); }
static void by_a_handler(void) { signal(SIGUSR1, in_handler); raise(SIGUSR1); }
static void in_handler_of_faults(int s, siginfo_t *i, void *c) {
    (void)s, (void)i, (void)c;
    mprotect((void *)(((uintptr_t)p + PAGE - 1) & ~(PAGE - 1)), MiB, PROT_READ | PROT_WRITE);
    make_with(NULL, 1);
}
static void by_a_handler_of_faults(void) {
    struct sigaction a = {.sa_sigaction = in_handler_of_faults, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    char *at = (char *)(((uintptr_t)p + PAGE - 1) & ~(PAGE - 1));
    must(!mprotect(at, MiB, PROT_NONE), "mprotect");
    ((volatile uint64_t *)p)[4096] = value(4096, 5);
}
static void in_destructor(void *unused) { (void)unused; make_with(NULL, 1); }
static void *with_key(void *key) {
    pthread_setspecific(*(pthread_key_t *)key, key);
    return NULL;
}
static void by_a_destructor(void) {
    pthread_key_t key;
    pthread_t t;
    must(!pthread_key_create(&key, in_destructor), "a key");
    must(!pthread_create(&t, NULL, with_key, &key), "pthread_create");
    pthread_join(t, NULL);
}
static void at_exit(void) {
    make_with(NULL, 1);
    printf("at exit: %ld\n", wrong_bytes);
}
static void at_the_end(void) { atexit(at_exit); }
static void ends_as(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    printf("child: %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}
static void in_a_child(void) {
    pid_t child = fork();
    if (!child) {
        make_with(NULL, 1);
        _exit(wrong_bytes ? 1 : 11);
    }
    ends_as(child);
}
static void in_a_child_of_a_thread(void) {
    pthread_t t;
    must(!pthread_create(&t, NULL, (void *(*)(void *))(void *)in_a_child, NULL), "pthread_create");
    pthread_join(t, NULL);
}

/* Threads that the C library makes. */
static struct sigevent event(pthread_attr_t *a) {
    struct sigevent e;
    memset(&e, 0, sizeof e);
    e.sigev_notify = SIGEV_THREAD;
    e.sigev_notify_function = body_of_callback;
    e.sigev_notify_attributes = a;
    return e;
}
static void timer_with(pthread_attr_t *a) {
    struct sigevent e = event(a);
    struct itimerspec t = {{0, 0}, {0, 500000}};
    timer_t id;
    must(!timer_create(CLOCK_MONOTONIC, &e, &id) && !timer_settime(id, 0, &t, NULL), "a timer");
    wait_for_use();
    timer_delete(id);
}
static void of_a_timer(void) { timer_with(NULL); }
static void of_a_timer_with_stack(void) {
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 256 << 10);
    timer_with(&a);
}
static void of_a_queue(void) {
    char name[64];
    snprintf(name, sizeof name, "/homenode-births-%d", (int)getpid());
    struct mq_attr about = {.mq_maxmsg = 2, .mq_msgsize = 8};
    mqd_t q = mq_open(name, O_RDWR | O_CREAT, 0600, &about);
    if (q == (mqd_t)-1) return say("no queue\n");
    mq_unlink(name);
    struct sigevent e = event(NULL);
    must(!mq_notify(q, &e), "mq_notify");
    must(!mq_send(q, "x", 1, 0), "mq_send");
    wait_for_use();
    mq_close(q);
}
static void of_a_read(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    static char to[64];
    struct aiocb b = {.aio_fildes = fd, .aio_buf = to, .aio_nbytes = sizeof to, .aio_sigevent = event(NULL)};
    must(fd >= 0 && !aio_read(&b), "aio_read");
    wait_for_use();
}
static void of_a_list(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    static char to[64];
    static struct aiocb b;
    b = (struct aiocb){.aio_fildes = fd, .aio_buf = to, .aio_nbytes = sizeof to, .aio_lio_opcode = LIO_READ};
    struct aiocb *all[] = {&b};
    struct sigevent e = event(NULL);
    must(fd >= 0 && !lio_listio(LIO_NOWAIT, all, 1, &e), "lio_listio");
    wait_for_use();
}
static void of_a_name(void) {
    static struct gaicb b = {.ar_name = "127.0.0.1"};
    struct gaicb *all[] = {&b};
    struct sigevent e = event(NULL);
    must(!getaddrinfo_a(GAI_NOWAIT, all, 1, &e), "getaddrinfo_a");
    wait_for_use();
}

/* Processes, and threads past the C library. They end by returning. */
static char *const words[] = {"sh", "-c", "exit 12", NULL};
static void by_fork(void) {
    pid_t child = fork();
    if (!child) use(), _exit(wrong_bytes ? 1 : 13);
    ends_as(child);
}
static void by__Fork(void) {
    pid_t child = _Fork();
    if (!child) use(), _exit(wrong_bytes ? 1 : 14);
    ends_as(child);
}
static void by_vfork(void) {
    pid_t child = vfork();
    if (!child) _exit(15);
    ends_as(child);
}
static void by_vfork_and_exec(void) {
    pid_t child = vfork();
    if (!child) execv("/bin/sh", words), _exit(1);
    ends_as(child);
}
static void by_spawn(void) {
    pid_t child;
    must(!posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ), "posix_spawn");
    ends_as(child);
}
static void by_spawnp(void) {
    pid_t child;
    must(!posix_spawnp(&child, "sh", NULL, NULL, words, environ), "posix_spawnp");
    ends_as(child);
}
static void by_system(void) { printf("system: %d\n", system("exit 16")); }
static void by_popen(void) {
    char text[32] = {0};
    FILE *f = popen("echo from a pipe; exit 17", "r");
    must(f && fgets(text, sizeof text, f), "popen");
    fputs(text, stdout);
    printf("%d\n", pclose(f));
}
static int cloned(void *code) {
    use();
    return wrong_bytes ? 1 : (int)(intptr_t)code;
}
static char *stack_of_clone(void) {
    char *s = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    must(s != MAP_FAILED, "a stack");
    return s + MiB;
}
static void by_clone(void) { ends_as(clone(cloned, stack_of_clone(), SIGCHLD, (void *)18)); }
static void by_clone_that_shares(void) { ends_as(clone(cloned, stack_of_clone(), CLONE_VM | SIGCHLD, (void *)19)); }
static void by_clone_that_waits(void) {
    ends_as(clone(cloned, stack_of_clone(), CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)20));
}
static void by_clone_on_heap(void) {
    char *s = memset(malloc(MiB), 0, MiB);
    if (getenv("HOSTILE_ARMED")) wait_until_armed(s, MiB, "the stack");
    ends_as(clone(cloned, s + MiB, CLONE_VM | SIGCHLD, (void *)21));
}
static volatile int bare_is_done;
/* Without thread-local storage of its own. */
static int bare(void *unused) {
    (void)unused;
    use();
    bare_is_done = 1;
    syscall(SYS_exit, 0);
    return 0;
}
static void by_clone_of_a_thread(void) {
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    must(clone(bare, stack_of_clone(), flags, NULL) > 0, "clone");
    while (!bare_is_done) sched_yield();
}

static void while_loaded(void) {}

enum { POSIX = 1, CALLBACK = 2, ALONE = 4 };
#define OF(f) {#f, f, POSIX}
static const struct { const char *name; void (*f)(void); int kind; } makers[] = {
    OF(posix), OF(detached), OF(small_stack), OF(large_stack), OF(no_guard), OF(large_guard), OF(stack_of_heap),
    OF(stack_of_mapping), OF(own_order), OF(one_cpu), OF(deaf), OF(system_scope), OF(inherits_deafness), OF(c11),
    OF(many), OF(one_after_another), OF(by_a_thread), OF(by_a_handler), OF(by_a_handler_of_faults),
    OF(by_a_destructor), OF(at_the_end), OF(in_a_child), OF(in_a_child_of_a_thread), OF(while_loaded),
    {"timer", of_a_timer, CALLBACK}, {"timer-with-stack", of_a_timer_with_stack, CALLBACK},
    {"queue", of_a_queue, CALLBACK}, {"read", of_a_read, CALLBACK}, {"list", of_a_list, CALLBACK},
    {"name", of_a_name, CALLBACK},
    {"fork", by_fork, ALONE}, {"_Fork", by__Fork, ALONE}, {"vfork", by_vfork, ALONE},
    {"vfork-and-exec", by_vfork_and_exec, ALONE}, {"spawn", by_spawn, ALONE}, {"spawnp", by_spawnp, ALONE},
    {"system", by_system, ALONE}, {"popen", by_popen, ALONE}, {"clone", by_clone, ALONE},
    {"clone-that-shares", by_clone_that_shares, ALONE}, {"clone-that-waits", by_clone_that_waits, ALONE},
    {"clone-on-heap", by_clone_on_heap, ALONE}, {"clone-of-a-thread", by_clone_of_a_thread, ALONE},
};

enum { MAKERS = sizeof makers / sizeof *makers, ENDS = sizeof ends / sizeof *ends };

static int together(int maker, int end) {
    if (makers[maker].kind == POSIX) return 1;
    if (makers[maker].kind == CALLBACK) return (ends[end].flags & FOR_ALL) != 0;
    return ends[end].f == returns;
}

static void prepare(void) {
    if (p) return;
    used = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(used != MAP_FAILED && !sem_init(used, 0, 0), "sem_init");
    p = malloc(n);
    fill(p, n, 5);
}

/* The loader hands the words of the command to it. */
__attribute__((constructor)) static void loaded(int argc, char **argv) {
    if (argc < 2 || strncmp(argv[1], "while_loaded/", 13)) return;
    for (int e = 0; e < ENDS; e++)
        if (!strcmp(argv[1] + 13, ends[e].name)) the_end = &ends[e];
    must(the_end != NULL, argv[1]);
    prepare();
    make_with(NULL, 1);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "--list";
    if (!strcmp(way, "--list")) {
        for (int m = 0; m < MAKERS; m++)
            for (int e = 0; e < ENDS; e++)
                if (together(m, e)) printf("%s/%s\n", makers[m].name, ends[e].name);
        return 0;
    }
    const char *slash = strchr(way, '/');
    must(slash != NULL, way);
    void (*make)(void) = NULL;
    for (int m = 0; m < MAKERS; m++)
        if (!strncmp(way, makers[m].name, (size_t)(slash - way)) && !makers[m].name[slash - way]) make = makers[m].f;
    for (int e = 0; e < ENDS; e++)
        if (!strcmp(slash + 1, ends[e].name)) the_end = &ends[e];
    must(make && the_end, way);
    prepare();
    if (getenv("HOSTILE_ARMED")) wait_until_armed(p, n, "its memory");
    setvbuf(stdout, NULL, _IONBF, 0);
    make();
    check(p, n, 5, "memory");
    printf("%ld threads, %ld wrong bytes\n", threads_made, wrong_bytes);
    return wrong_bytes ? 1 : 0;
}
