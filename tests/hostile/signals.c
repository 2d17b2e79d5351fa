/* Own handlers of SIGSEGV and SIGBUS, blocked signals, handlers that touch the memory, on alternate
 * stacks. */
#include "hostile.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static size_t n = 4 * MiB;
static uint64_t *p;
static sigjmp_buf back;
static volatile int segv, bus, alarms;
static volatile uint64_t sink;

static void on_segv(int s, siginfo_t *info, void *context) {
    (void)info, (void)context;
    must(s == SIGSEGV, "signal's number");
    segv++;
    sink += p[(size_t)segv * 777 % (n / 8)];
    siglongjmp(back, 1);
}

static void on_bus(int s) {
    must(s == SIGBUS, "signal's number");
    bus++;
    sink += p[(size_t)bus * 999 % (n / 8)];
    siglongjmp(back, 1);
}

static void on_alarm(int s) {
    (void)s;
    size_t i = (size_t)++alarms * 4099 % (n / 8);
    if (p[i] != value(i, 5)) wrong_bytes += 8;
}

int main(void) {
    p = malloc(n);
    fill(p, n, 5);
    static char stack[64 << 10];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    must(!sigaltstack(&alternate, NULL), "sigaltstack");
    struct sigaction a = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
    sigfillset(&a.sa_mask);
    must(!sigaction(SIGSEGV, &a, NULL), "sigaction");
    must(signal(SIGBUS, on_bus) == SIG_DFL, "signal");
    must(!sigaction(SIGSEGV, NULL, &old) && old.sa_sigaction == on_segv, "what was set is told");
    must(signal(SIGBUS, on_bus) == on_bus, "what was set is told");
    struct sigaction t = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigfillset(&t.sa_mask);
    must(!sigaction(SIGALRM, &t, NULL), "sigaction");
    struct itimerval every = {{0, 700}, {0, 700}};
    must(!setitimer(ITIMER_REAL, &every, NULL), "setitimer");
    /* A file that is shorter than its mapping: SIGBUS of the program's own. */
    FILE *f = tmpfile();
    must(f != NULL, "tmpfile");
    volatile char *beyond = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fileno(f), 0);
    volatile char *nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double end = end_time();
    for (volatile int round = 0; now() < end; round++) {
        sigset_t all, before;
        sigfillset(&all);
        must(!pthread_sigmask(SIG_BLOCK, &all, &before), "pthread_sigmask");
        check(p, n, 5, "with all signals blocked");
        must(!pthread_sigmask(SIG_SETMASK, &before, NULL), "pthread_sigmask");
        volatile int had = segv;
        errno = 77;
        if (!sigsetjmp(back, 1)) sink += (uint64_t)*nothing;
        must(segv == had + 1, "own SIGSEGV");
        had = bus;
        if (!sigsetjmp(back, 1)) sink += (uint64_t)*beyond;
        must(bus == had + 1, "own SIGBUS");
        errno = 77;
        check(p, n, 5, "afterwards");
        must(errno == 77, "errno is kept");
    }
    must(alarms > 0, "alarms");
    signal(SIGALRM, SIG_IGN);
    /* The default ends the program by the signal. */
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        sink += (uint64_t)*nothing;
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "killed by SIGSEGV");
    return done();
}
