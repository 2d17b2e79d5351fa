/* A peer that reads this memory by process_vm_readv, which nobody can intercept: it gets the right
 * bytes, or is told that it cannot have them; never others. "whole": it always gets them, for
 * homenode knows of it. */
#include "hostile.h"
#include <sys/prctl.h>
#include <sys/uio.h>

int main(int argc, char **argv) {
    int whole = argc > 1 && !strcmp(argv[1], "whole");
    size_t n = 4 * MiB;
    uint64_t *p = malloc(n);
    int go[2];
    fill(p, n, 6);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    must(!pipe(go), "pipe");
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        uint64_t *copy = malloc(n);
        long right = 0, refused = 0;
        double end = end_time();
        while (now() < end) {
            struct iovec mine = {copy, n}, theirs = {p, n};
            memset(copy, 0, n);
            ssize_t got = process_vm_readv(parent, &mine, 1, &theirs, 1, 0);
            if (got < 0 && errno == EPERM) _exit(77);
            if (got > 0) check(copy, (size_t)got, 6, "peer");
            right += got == (ssize_t)n;
            refused += got != (ssize_t)n;
        }
        fprintf(stderr, "peer: %ld whole, %ld refused or short\n", right, refused);
        /* Or nothing was compared, or none of it was ever armed. */
        if (!right || (!whole && getenv("HOMENODE_RUN_DIR") && !refused)) wrong_bytes++;
        _exit(wrong_bytes || (whole && refused) ? 1 : 0);
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) check(p, n, 6, "own");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return skipped("process_vm_readv is not allowed");
    must(status == 0, "peer");
    return done();
}
