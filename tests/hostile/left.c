/* Calls that never return: a signal handler jumps out of them, or the thread is cancelled. The
 * buffers of such a call must move afterwards as any other memory. */
#include "hostile.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

static const size_t n = 8 * MiB;
static char *memory;
static int silent[2]; /* a pipe in which nothing comes */
static FILE *full;    /* a stream that nobody reads */

static void reads(void) { (void)!read(silent[0], memory, n); }
static void reads_two(void) {
    struct iovec v[] = {{memory, n / 2}, {memory + n / 2, n / 2}};
    (void)!readv(silent[0], v, 2);
}
static void receives(void) {
    int ends[2];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    struct iovec v = {memory, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    (void)!recvmsg(ends[0], &m, 0);
}
static void prints(void) {
    for (;;) fprintf(full, "%0*d\n", 4000, 1);
}
static void waits(void) { (void)!system("exec sleep 2"); }
static void sleeps(void) { nanosleep((struct timespec *)memory, NULL); }

static void (*const calls[])(void) = {reads, reads_two, receives, sleeps, prints, waits};
enum { CALLS = sizeof calls / sizeof *calls, PRINTS = 4, WAITS = 5 };

static void *in_thread(void *call) {
    calls[(size_t)(uintptr_t)call]();
    return NULL;
}

static void cancel(size_t call) {
    pthread_t t;
    must(!pthread_create(&t, NULL, in_thread, (void *)(uintptr_t)call), "pthread_create");
    usleep(20000);
    void *result;
    must(!pthread_cancel(t) && !pthread_join(t, &result) && result == PTHREAD_CANCELED, "cancelled");
}

static sigjmp_buf back;
static void on_alarm(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void jump(size_t call) {
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    if (!sigsetjmp(back, 1)) {
        must(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
        calls[call]();
        must(0, "a call came back");
    }
}

/* A handler on a stack that lies above the call that it interrupts, as arrays of a caller do, and
 * which makes calls itself: the interrupted one still has its memory. */
static int told[2];
static void on_signal(int signal) {
    char text = 'x';
    (void)signal;
    usleep(3000);
    must(write(told[1], &text, 1) == 1, "write");
    usleep(3000);
}

__attribute__((noinline)) static void interrupted(uint64_t salt) {
    struct itimerval soon = {.it_value = {.tv_usec = 3000}};
    must(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
    uint64_t *word = (uint64_t *)(void *)memory + n / 16, kept = *word;
    must(read(told[0], word, 1) == 1 && *(char *)word == 'x', "read");
    *word = kept;
    check((uint64_t *)(void *)memory, n, salt, "the program's");
}

int main(void) {
    char stack[64 << 10];
    struct sigaction jumps = {.sa_handler = on_alarm}, stays = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    memory = malloc(n);
    int pair[2];
    must(memory && !pipe(silent) && !pipe(told) && !pipe(pair) && (full = fdopen(pair[1], "w")), "a pipe");
    ((struct timespec *)(void *)memory)->tv_sec = 100;
    for (size_t i = 0; i < CALLS; i++) cancel(i);
    full = fdopen(dup(pair[1]), "w");
    must(!sigaction(SIGALRM, &jumps, NULL), "sigaction");
    for (size_t i = 0; i < WAITS; i++) jump(i);
    must(!sigaction(SIGALRM, &stays, NULL), "sigaction");
    must(!sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL), "sigaltstack");
    double end = end_time();
    for (uint64_t salt = 1; now() < end; salt++) {
        fill((uint64_t *)(void *)memory, n, salt);
        usleep(1500);
        check((uint64_t *)(void *)memory, n, salt, "the program's");
        if (salt % 8 == 0) interrupted(salt);
    }
    must(!sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL), "sigaltstack");
    /* What the streams still have is lost. */
    must(signal(SIGPIPE, SIG_IGN) != SIG_ERR && !close(pair[0]), "close");
    return done();
}
