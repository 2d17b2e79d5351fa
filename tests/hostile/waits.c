/* Waits for signals that were sent to the process while its only thread had them blocked. No other
 * thread may take them: a thread of somebody else's would run the handler, or die of the signal,
 * and the wait would never end. */
#include "hostile.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>

static size_t n = 4 * MiB;
static uint64_t *p;
static pid_t self;
static volatile sig_atomic_t handled;

static void on_signal(int s) {
    size_t i = (size_t)++handled * 4099 % (n / 8);
    if (p[i] != value(i, 6)) wrong_bytes += 8;
    must(syscall(SYS_gettid) == self && (s == SIGUSR1 || s == SIGCHLD || s == SIGALRM), "a handler in the thread that waits");
}

/* By an instruction of the program's own, with a set that lies on the stack. */
static long raw_sigsuspend(const sigset_t *set) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_rt_sigsuspend), "D"(set), "S"(8L) : "rcx", "r11", "memory");
    return r;
}

static void suspend(const sigset_t *set, int how) {
    int before = handled;
    sigset_t copy = *set;
    if (how % 3 == 0) must(sigsuspend(set) == -1 && errno == EINTR, "sigsuspend");
    if (how % 3 == 1) must(syscall(SYS_rt_sigsuspend, set, 8) == -1 && errno == EINTR, "rt_sigsuspend");
    if (how % 3 == 2) must(raw_sigsuspend(&copy) == -EINTR, "rt_sigsuspend of the program's own");
    must(handled == before + 1, "one handler ran");
}

int main(void) {
    self = getpid();
    p = malloc(n);
    fill(p, n, 6);
    /* The sets lie in memory that is armed. */
    sigset_t *sets = malloc(256 << 10), *waited = &sets[0], *none = &sets[100], *second = &sets[200];
    sigemptyset(waited);
    sigaddset(waited, SIGUSR1);
    sigaddset(waited, SIGUSR2);
    sigaddset(waited, SIGCHLD);
    sigaddset(waited, SIGALRM);
    must(!sigprocmask(SIG_BLOCK, waited, none), "sigprocmask");
    sigemptyset(second);
    sigaddset(second, SIGUSR2);
    struct sigaction a = {.sa_handler = on_signal};
    must(!sigaction(SIGUSR1, &a, NULL) && !sigaction(SIGCHLD, &a, NULL) && !sigaction(SIGALRM, &a, NULL), "sigaction");
    int fd = signalfd(-1, second, 0);
    must(fd >= 0, "signalfd");
    double end = end_time();
    for (int round = 0; now() < end; round++) {
        must(!kill(self, SIGUSR1), "kill");
        suspend(none, round);

        pid_t child = fork();
        must(child >= 0, "fork");
        if (!child) _exit(7);
        int status;
        suspend(none, round);
        must(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7, "waitpid");

        struct itimerval soon = {{0, 0}, {0, 300}};
        must(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
        suspend(none, round);

        /* Nobody handles this one: it would end the process. */
        int got = 0;
        struct timespec long_time = {60, 0};
        must(!kill(self, SIGUSR2), "kill");
        if (round % 3 == 0) must(!sigwait(second, &got), "sigwait");
        if (round % 3 == 1) got = sigtimedwait(second, NULL, &long_time);
        if (round % 3 == 2) {
            struct signalfd_siginfo info;
            must(read(fd, &info, sizeof info) == sizeof info, "read of a signalfd");
            got = (int)info.ssi_signo;
        }
        must(got == SIGUSR2, "the signal that was sent");
        check(p, n, 6, "memory");
    }
    must(handled > 0, "rounds");
    return done();
}
