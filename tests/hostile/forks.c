/* Forks while armed, by fork, _Fork, vfork, clone, bare system calls and posix_spawn. Parent and
 * child both see all memory, and each its own writes. Arming goes on. */
#include "hostile.h"
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;

static int execs(void *args) {
    execv("/proc/self/exe", args);
    return 3;
}

static size_t n = 8 * MiB;
static uint64_t *p;

static int child_of(void *name) {
    check(p, n, 1, name);
    fill(p, n, 2);
    check(p, n, 2, "child's own");
    return wrong_bytes ? 1 : 0;
}

static char stack[64 << 10] __attribute__((aligned(16)));

/* Six ways to a child that has a copy of the memory. */
#define WAYS 6
static pid_t make(int way) {
    struct clone_args args = {.exit_signal = SIGCHLD};
    switch (way) {
    case 0: return fork();
    case 1: return _Fork();
    case 2: return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    case 3: return (pid_t)syscall(SYS_fork);
    case 4: return (pid_t)syscall(SYS_clone3, &args, sizeof args);
    default: return clone(child_of, stack + sizeof stack, SIGCHLD, "clone's child");
    }
}

static void share(char **args) {
    int status;
    pid_t child = clone(execs, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, args);
    must(waitpid(child, &status, 0) == child && status == 0, "child that shares the memory");
}

int main(int argc, char **argv) {
    if (argc > 1) return strcmp(argv[1], "child") ? 1 : 0;
    /* Before anything is armed: it has to begin in spite of this. */
    share((char *[]){argv[0], "child", NULL});
    p = malloc(n);
    fill(p, n, 1);
    double end = end_time();
    for (int round = 0; now() < end; round++) {
        int status;
        pid_t child = make(round % WAYS);
        must(child >= 0, "fork");
        if (child == 0) {
            static char name[] = "child by way 0";
            name[13] = (char)('0' + round % WAYS);
            _exit(child_of(name));
        }
        p[round % (n / 8)] = value((size_t)round % (n / 8), 1);
        must(waitpid(child, &status, 0) == child && status == 0, "child");
        check(p, n, 1, "parent");
        /* The argument lies in memory that may be armed. */
        char *text = (char *)(p + 1024);
        strcpy(text, "child");
        char *args[] = {argv[0], text, NULL};
        must(posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ) == 0, "posix_spawn");
        must(waitpid(child, &status, 0) == child && status == 0, "spawned child");
        if ((child = vfork()) == 0) execv("/proc/self/exe", args), _exit(3);
        must(waitpid(child, &status, 0) == child && status == 0, "vfork's child");
        share(args);
        p[1024] = value(1024, 1);
    }
    free(p);
    return done();
}
