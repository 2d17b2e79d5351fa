/* Closes all descriptors that it does not know, or replaces them with its own, as daemons and
 * shells do, while memory is armed. */
#include "hostile.h"
#include <fcntl.h>
#include <sys/syscall.h>

static void close_all(int way) {
    switch (way % 4) {
    case 0:
        for (int fd = 3; fd < 1024; fd++) close(fd);
        break;
    case 1: must(!close_range(3, ~0u, 0), "close_range"); break;
    case 2: closefrom(3); break;
    default:
        for (int fd = 3; fd < 1024; fd++) dup2(1, fd);
        must(!syscall(SYS_close_range, 3, ~0u, 0), "close_range");
    }
}

int main(void) {
    size_t n = 8 * MiB;
    uint64_t *p = malloc(n);
    fill(p, n, 1);
    double end = end_time();
    for (int round = 0; now() < end; round++) {
        usleep(3000);
        close_all(round);
        check(p, n, 1, "after all were closed");
        int fd = open("/dev/null", O_RDONLY);
        must(fd >= 3 && fd < 64, "a low number");
        for (int to = 30; to < 40; to++) must(dup2(fd, to) == to && !close(to), "dup2");
        must(!close(fd) && close(fd) == -1 && errno == EBADF, "twice closed");
        pid_t child = fork();
        if (!child) {
            /* Any number is the child's own. */
            for (int to = 3; to < 1000; to++)
                if (dup2(1, to) != to || close(to)) _exit(1);
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && !status, "a child's descriptors");
    }
    return done();
}
