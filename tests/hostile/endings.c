/* Every way to end a process, by everybody who can do it. The ways are the product of two tables:
 * who ends the process, and how. As in ends.c, a run without homenode says what is right.
 * argv[1]: WHO/HOW, or --list. HOSTILE_ARMED: memory is armed before the end. */
#include "hostile.h"
#include <assert.h>
#include <err.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

static size_t n = 2 * MiB;
static uint64_t *p;
static pthread_t first;
static void (*how)(void);
static const char *argv0;

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(99);
}

static void look(void) {
    wrong_bytes = 0;
    check(p, n, 3, "memory");
    if (wrong_bytes) say("wrong\n");
}

static void at_exit(void) { say("atexit\n"); }
static void at_quick(void) { say("at_quick_exit\n"); }
__attribute__((destructor)) static void at_end(void) {
    if (p) say("destructor\n");
}

/* How it ends. ------------------------------------------------------------------------------- */

static char *const words[] = {"sh", "-c", "echo another program; exit 9", NULL};

static void by_exit(void) { exit(31); }
static void by__exit(void) { _exit(32); }
static void by_Exit(void) { _Exit(33); }
static void by_quick_exit(void) { quick_exit(34); }
static void by_exit_group(void) { syscall(SYS_exit_group, 35); }
static void by_raw_exit_group(void) {
    __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(36) : "rcx", "r11", "memory");
}
static void by_err(void) { errno = ENOENT; err(37, "what"); }
static void by_errx(void) { errx(38, "what"); }
static void by_assert(void) { assert(p == NULL); }
static void by_abort(void) { abort(); }
static void by_kill(void) { kill(getpid(), SIGTERM); pause(); }
static void by_tgkill(void) { syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGTERM); }
static void by_queue(void) {
    union sigval v = {.sival_int = 1};
    sigqueue(getpid(), SIGRTMIN + 3, v);
    pause();
}
static void by_thread_kill(void) { pthread_kill(pthread_self(), SIGINT); }
#define RAISES(s) static void raises_##s(void) { raise(SIG##s); }
RAISES(TERM) RAISES(KILL) RAISES(INT) RAISES(HUP) RAISES(QUIT) RAISES(BUS) RAISES(SEGV) RAISES(USR1)
RAISES(ALRM) RAISES(PIPE) RAISES(XCPU) RAISES(SYS) RAISES(TRAP) RAISES(FPE) RAISES(ILL) RAISES(IO) RAISES(PROF)
static void by_pipe(void) {
    int s[2];
    must(!pipe(s), "pipe");
    close(s[0]);
    if (write(s[1], "x", 1) < 0) say("written\n");
}
static void by_timer(void) {
    struct itimerval t = {{0, 0}, {0, 2000}};
    setitimer(ITIMER_REAL, &t, NULL);
    for (;;) pause();
}
static void by_profiling_timer(void) {
    struct itimerval t = {{0, 0}, {0, 2000}};
    setitimer(ITIMER_VIRTUAL, &t, NULL);
    for (;;) ((volatile uint64_t *)p)[0] = value(0, 3);
}
static void by_posix_timer(void) {
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    struct itimerspec t = {{0, 0}, {0, 2000000}};
    timer_t id;
    must(!timer_create(CLOCK_MONOTONIC, &e, &id) && !timer_settime(id, 0, &t, NULL), "a timer");
    for (;;) pause();
}
static void by_null(void) { *(volatile int *)8 = 1; }
static void by_wild_address(void) { *(volatile int *)0x123456789abcdef0 = 1; }
/* The first page that is whole. */
static void *pages(void) { return (void *)(((uintptr_t)p + PAGE - 1) & ~(PAGE - 1)); }
static void by_protected(void) {
    must(!mprotect(pages(), n / 2, PROT_NONE), "mprotect");
    ((volatile uint64_t *)p)[n / 32] = 1;
}
static void by_read_only(void) {
    must(!mprotect(pages(), n / 2, PROT_READ), "mprotect");
    look();
    ((volatile uint64_t *)p)[n / 32] = 1;
}
static void by_unmapped(void) {
    must(!munmap((char *)pages() + n / 4, n / 4), "munmap");
    say(((volatile uint64_t *)p)[n / 16] ? "read\n" : "zero\n");
}
static void by_short_file(void) {
    int fd = memfd_create("short", 0);
    must(fd >= 0 && !ftruncate(fd, (off_t)PAGE), "a file");
    char *m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(m != MAP_FAILED, "mmap");
    m[PAGE] = 1;
}
static void by_division(void) {
    __asm__ volatile("div %%ecx" : : "a"(1), "d"(0), "c"(0) : "cc");
}
static void by_illegal(void) { __asm__ volatile("ud2"); }
static void by_breakpoint(void) { __asm__ volatile("int3"); }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winfinite-recursion"
static void __attribute__((noinline)) deeper(volatile char *above) {
    volatile char here[4096];
    here[0] = above[0];
    deeper(here);
    above[0] = here[0];
}
#pragma GCC diagnostic pop
static void by_stack(void) {
    volatile char here = 1;
    deeper(&here);
}
static void by_execve(void) { execve("/bin/sh", words, environ); }
static void by_execv(void) { execv("/bin/sh", words); }
static void by_execvp(void) { execvp("sh", words); }
static void by_execvpe(void) { execvpe("sh", words, environ); }
static void by_execl(void) { execl("/bin/sh", "sh", "-c", "echo another; exit 8", NULL); }
static void by_execle(void) { execle("/bin/sh", "sh", "-c", "echo another; exit 7", NULL, environ); }
static void by_execlp(void) { execlp("sh", "sh", "-c", "echo another; exit 6", NULL); }
static void by_fexecve(void) { fexecve(open("/bin/sh", O_RDONLY | O_CLOEXEC), words, environ); }
static void by_execveat(void) { syscall(SYS_execveat, AT_FDCWD, "/bin/sh", words, environ, 0); }
static void by_exec_of_itself(void) { execl(argv0, argv0, "main/exit", NULL); }
static void by_failed_exec(void) {
    execv("/does/not/exist", words);
    look();
    exit(39);
}
static void by_daemon(void) {
    /* The child stays behind for a moment and says nothing. */
    if (!daemon(1, 1)) _exit(0);
}
static sigjmp_buf back;
static void jumps(int s) {
    (void)s;
    siglongjmp(back, 1);
}
static void by_jump_out_of_a_fault(void) {
    signal(SIGSEGV, jumps);
    if (!sigsetjmp(back, 1)) by_null();
    look();
    exit(40);
}
static void leaves(int s) {
    static int once;
    /* A thread beside may fault, too. */
    if (__atomic_exchange_n(&once, 1, __ATOMIC_SEQ_CST)) pause();
    say("handled\n");
    _exit(40 + s);
}
static void by_handler(void) { signal(SIGTERM, leaves); raise(SIGTERM); }
static void by_handler_of_faults(void) { signal(SIGSEGV, leaves); by_protected(); }
static void by_handler_once(void) {
    struct sigaction a = {.sa_handler = SIG_IGN, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGTERM, &a, NULL);
    raise(SIGTERM);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
}
static void by_blocked_fault(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    by_null();
}
static void by_ignored_fault(void) { signal(SIGSEGV, SIG_IGN); by_null(); }
static void by_pending(void) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    raise(SIGTERM);
    look();
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}
static void after_a_stop(void) {
    pid_t child = fork();
    if (!child) {
        kill(getppid(), SIGSTOP);
        usleep(2000);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    look();
    exit(41);
}
static void after_system(void) { exit(system("exit 3") == 3 << 8 ? 42 : 43); }
static void after_spawn(void) {
    pid_t child;
    int status = 0;
    must(!posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ), "posix_spawn");
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    exit(WEXITSTATUS(status) + 40);
}
static void after_all_descriptors(void) { close_range(3, ~0U, 0); exit(44); }
static void by_memory_limit(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_DATA, &none);
    setrlimit(RLIMIT_AS, &none);
    look();
    exit(45);
}

#define HOW(f) {#f, f}
static const struct { const char *name; void (*f)(void); } hows[] = {
    {"exit", by_exit}, {"_exit", by__exit}, {"_Exit", by_Exit}, HOW(by_quick_exit), HOW(by_exit_group), HOW(by_raw_exit_group),
    HOW(by_err), HOW(by_errx), HOW(by_assert), HOW(by_abort), HOW(by_kill), HOW(by_tgkill), HOW(by_queue),
    HOW(by_thread_kill), HOW(raises_TERM), HOW(raises_KILL), HOW(raises_INT), HOW(raises_HUP), HOW(raises_QUIT),
    HOW(raises_BUS), HOW(raises_SEGV), HOW(raises_USR1), HOW(raises_ALRM), HOW(raises_PIPE), HOW(raises_XCPU),
    HOW(raises_SYS), HOW(raises_TRAP), HOW(raises_FPE), HOW(raises_ILL), HOW(raises_IO), HOW(raises_PROF), HOW(by_pipe),
    HOW(by_timer), HOW(by_profiling_timer), HOW(by_posix_timer), HOW(by_null), HOW(by_wild_address), HOW(by_protected),
    HOW(by_read_only), HOW(by_unmapped), HOW(by_short_file), HOW(by_division), HOW(by_illegal), HOW(by_breakpoint),
    HOW(by_stack), HOW(by_execve), HOW(by_execv), HOW(by_execvp), HOW(by_execvpe), HOW(by_execl), HOW(by_execle),
    HOW(by_execlp), HOW(by_fexecve), HOW(by_execveat), HOW(by_exec_of_itself), HOW(by_failed_exec), HOW(by_daemon),
    HOW(by_jump_out_of_a_fault), HOW(by_handler), HOW(by_handler_of_faults), HOW(by_handler_once), HOW(by_blocked_fault),
    HOW(by_ignored_fault), HOW(by_pending), HOW(after_a_stop), HOW(after_system), HOW(after_spawn),
    HOW(after_all_descriptors), HOW(by_memory_limit),
};

/* Who ends it. ------------------------------------------------------------------------------- */

static void act(void) {
    look();
    how();
    say("not ended\n");
    _exit(98);
}

static void *acts(void *unused) { act(); return unused; }

static pthread_t start(void *(*f)(void *)) {
    pthread_t t;
    must(!pthread_create(&t, NULL, f, NULL), "pthread_create");
    return t;
}

static void sleeps(void) {
    for (;;) pause();
}

static void *uses(void *unused) {
    for (;;)
        for (size_t i = 0; i < n / 8; i += 64) __atomic_load_n(&p[i], __ATOMIC_RELAXED);
    return unused;
}

static void *acts_when_first_is_gone(void *unused) {
    for (int round = 0; round < 20000; round++) {
        char text[256] = {0};
        int fd = open("/proc/self/stat", O_RDONLY);
        must(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "/proc/self/stat");
        close(fd);
        if (strrchr(text, ')')[2] == 'Z') break;
        usleep(1000);
    }
    act();
    return unused;
}

static void in_handler(int s) { (void)s; act(); }
static void in_destructor(void *unused) { (void)unused; act(); }
static void in_cleanup(void *unused) { (void)unused; act(); }
static void in_callback(union sigval v) { (void)v; act(); }
static volatile int ready;
static void *waits_to_be_cancelled(void *unused) {
    pthread_cleanup_push(in_cleanup, NULL);
    ready = 1;
    sleeps();
    pthread_cleanup_pop(0);
    return unused;
}
static void *ends_with_a_key(void *key) {
    pthread_setspecific(*(pthread_key_t *)key, key);
    return NULL;
}

static void who_main(void) { act(); }
static void who_other(void) { start(acts); sleeps(); }
static void who_last(void) { start(acts_when_first_is_gone); pthread_exit(NULL); }
static void who_beside(void) { start(uses); act(); }
static void who_child(void) {
    pid_t child = fork();
    if (!child) act();
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    char text[64];
    snprintf(text, sizeof text, "child: %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
             WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    say(text);
    look();
    exit(50);
}
static void who_handler(void) { signal(SIGUSR2, in_handler); raise(SIGUSR2); }
static void who_handler_of_main(void) {
    signal(SIGUSR2, in_handler);
    pthread_t t = start(uses);
    (void)t;
    kill(getpid(), SIGUSR2);
    sleeps();
}
static void who_atexit(void) { atexit(act); exit(51); }
static void who_key(void) {
    static pthread_key_t key;
    must(!pthread_key_create(&key, in_destructor), "a key");
    pthread_t t;
    must(!pthread_create(&t, NULL, ends_with_a_key, &key), "pthread_create");
    sleeps();
}
static void who_cancelled(void) {
    pthread_t t = start(waits_to_be_cancelled);
    while (!ready) usleep(100);
    pthread_cancel(t);
    sleeps();
}
static void who_timer(void) {
    struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = in_callback};
    struct itimerspec t = {{0, 0}, {0, 1000000}};
    timer_t id;
    must(!timer_create(CLOCK_MONOTONIC, &e, &id) && !timer_settime(id, 0, &t, NULL), "a timer");
    sleeps();
}

static const struct { const char *name; void (*f)(void); } whos[] = {
    {"main", who_main}, {"other", who_other}, {"last", who_last}, {"beside", who_beside}, {"child", who_child},
    {"handler", who_handler}, {"handler-beside", who_handler_of_main}, {"atexit", who_atexit}, {"key", who_key},
    {"cancelled", who_cancelled}, {"timer", who_timer},
};

enum { WHOS = sizeof whos / sizeof *whos, HOWS = sizeof hows / sizeof *hows };

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "--list";
    if (!strcmp(way, "--list")) {
        for (int w = 0; w < WHOS; w++)
            for (int h = 0; h < HOWS; h++) printf("%s/%s\n", whos[w].name, hows[h].name);
        return 0;
    }
    argv0 = argv[0];
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    const char *slash = strchr(way, '/');
    must(slash != NULL, way);
    void (*who)(void) = NULL;
    for (int w = 0; w < WHOS; w++)
        if (!strncmp(way, whos[w].name, (size_t)(slash - way)) && !whos[w].name[slash - way]) who = whos[w].f;
    for (int h = 0; h < HOWS; h++)
        if (!strcmp(slash + 1, hows[h].name)) how = hows[h].f;
    must(who && how, way);
    p = malloc(n);
    fill(p, n, 3);
    if (getenv("HOSTILE_ARMED")) wait_until_armed(p, n, "its memory");
    first = pthread_self();
    atexit(at_exit);
    at_quick_exit(at_quick);
    printf("buffered\n");
    who();
    return 97;
}
