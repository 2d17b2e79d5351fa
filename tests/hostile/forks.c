/* Forks while armed, by fork, vfork and posix_spawn: parent and child both see all of it, and each its own writes. */
#include "hostile.h"
#include <spawn.h>

extern char **environ;

int main(int argc, char **argv) {
    if (argc > 1) return strcmp(argv[1], "child") ? 1 : 0;
    size_t n = 8 * MiB;
    uint64_t *p = malloc(n);
    fill(p, n, 1);
    double end = end_time();
    for (int round = 0; now() < end; round++) {
        int status;
        pid_t child = fork();
        must(child >= 0, "fork");
        if (child == 0) {
            check(p, n, 1, "child");
            fill(p, n, 2);
            check(p, n, 2, "child's own");
            _exit(wrong_bytes ? 1 : 0);
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
        p[1024] = value(1024, 1);
    }
    free(p);
    return done();
}
