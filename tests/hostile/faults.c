/* Faults of the program's own: at memory that it has protected by a raw system call, in a handler
 * on the smallest possible stack, and in a handler of that very signal, which may start another
 * program. Signals are also set and blocked in the old ways. */
#include "hostile.h"
#include <signal.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

static const size_t size = 8 * MiB;
static char *memory;
static volatile sig_atomic_t faults;
static volatile uint64_t sum;

static long protect(char *page, int access) {
    long done = SYS_mprotect;
    __asm__ volatile("syscall" : "+a"(done) : "D"(page), "S"(PAGE), "d"(access) : "rcx", "r11", "memory");
    return done;
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    faults++;
    protect((char *)((uintptr_t)info->si_addr & ~(PAGE - 1)), PROT_READ | PROT_WRITE);
}

static void own_protection(int round) {
    char *page = memory + (size_t)round * 7 % (size / PAGE) * PAGE;
    sig_atomic_t before = faults;
    must(protect(page, PROT_READ) == 0, "mprotect");
    usleep(200);
    *page = 1;
    if (faults != before + 1) wrong_bytes++, fprintf(stderr, "%d faults instead of one\n", faults - before);
}

static void on_alarm(int signal) {
    static size_t at;
    (void)signal;
    sum += (uint64_t)memory[at = (at + 65537) % size];
}

/* Room for a frame, for one of a fault in the handler, and a little. */
static void small_stack(void) {
    size_t n = 2 * getauxval(AT_MINSIGSTKSZ) + 1024, all = (n + PAGE - 1) & ~(PAGE - 1);
    char *low = mmap(NULL, PAGE + all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(low != MAP_FAILED && !mprotect(low + PAGE, all, PROT_READ | PROT_WRITE), "mmap");
    must(!sigaltstack(&(stack_t){.ss_sp = low + PAGE + all - n, .ss_size = n}, NULL), "sigaltstack");
    must(!sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_ONSTACK}, NULL), "sigaction");
}

static int told;
static void crashes(int signal) {
    (void)signal;
    if (write(told, "x", 1) == 1) *(volatile int *)16 = 1;
}

/* The kernel ends who faults in a handler of that fault. */
static void crash_in_handler(void) {
    int ends[2], status;
    char text[64];
    must(!pipe(ends), "pipe");
    pid_t child = fork();
    if (!child) {
        told = ends[1];
        signal(SIGSEGV, crashes);
        *(volatile int *)16 = 1;
    }
    close(ends[1]);
    must(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "killed");
    must(read(ends[0], text, sizeof text) == 1, "one call of the handler");
    close(ends[0]);
}

/* Whether signal 33, which no program can block, is. */
static int is_blocked(void) {
    char line[256];
    unsigned long mask = 0;
    FILE *f = fopen("/proc/thread-self/status", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "SigBlk: %lx", &mask) != 1) {}
    if (f) fclose(f);
    return mask >> 32 & 1;
}

static volatile sig_atomic_t way;

/* Another program in place of this one, from a handler of a fault, in all ways; one that is not
 * there comes first. */
static void replaces(int signal) {
    char *args[] = {"faults", "asked", NULL};
    static const char *const self = "/proc/self/exe";
    int status = 0, before = is_blocked();
    (void)signal;
    must(execve("/no/such/program", args, environ) < 0 && errno == ENOENT, "exec that fails");
    must(is_blocked() == before, "as before the exec that failed");
    pid_t child = 0;
    if (way == 0) execve(self, args, environ);
    if (way == 1) execl(self, "faults", "asked", NULL);
    if (way == 2) syscall(SYS_execve, self, args, environ);
    if (way == 3 && !fork()) execv(self, args);
    if (way == 4) must(!posix_spawn(&child, self, NULL, NULL, args, environ), "posix_spawn");
    must(wait(&status) >= 0 && WIFEXITED(status), "wait");
    _exit(WEXITSTATUS(status));
}

static void replace_in_handler(void) {
    for (way = 0; way < 5; way++) {
        int status;
        pid_t child = fork();
        if (!child) {
            /* Without homenode, which would let it through. */
            unsetenv("LD_PRELOAD");
            signal(SIGSEGV, replaces);
            *(volatile int *)16 = 1;
        }
        must(waitpid(child, &status, 0) == child && WIFEXITED(status), "waitpid");
        if (WEXITSTATUS(status)) wrong_bytes++, fprintf(stderr, "signal 33 is blocked, way %d\n", way);
    }
}

static void never(int signal) {
    (void)signal;
    wrong_bytes++;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void old_ways(uint64_t *words) {
    must(sigset(SIGBUS, never) == SIG_DFL && sigset(SIGBUS, SIG_DFL) == never, "sigset");
    must(!sighold(SIGBUS) && !sighold(SIGSEGV) && sigblock(~0) != -1, "sighold");
    usleep(1500);
    check(words, size, 2, "with all signals blocked");
    must(!sigrelse(SIGBUS) && sigsetmask(0) != -1, "sigrelse");
    must(!sigignore(SIGBUS), "sigignore");
    usleep(1500);
    check(words, size, 2, "with SIGBUS ignored");
    must(sigset(SIGBUS, SIG_DFL) == SIG_IGN, "sigset");
}

int main(int argc, char **argv) {
    if (argc > 1) return !strcmp(argv[1], "asked") ? is_blocked() : 2;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *words = malloc(size);
    must(memory != MAP_FAILED && words, "memory");
    memset(memory, 1, size);
    fill(words, size, 2);
    small_stack();
    must(!sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, NULL), "sigaction");
    crash_in_handler();
    replace_in_handler();
    double end = end_time();
    for (int round = 0; now() < end; round++) {
        own_protection(round);
        raise(SIGUSR1);
        if (round % 64 == 0) old_ways(words);
    }
    must(!sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL), "sigaltstack");
    return done();
}
