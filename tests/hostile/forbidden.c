/* A program that forbids itself nearly all system calls, on pain of death, while memory is
 * armed. */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void forbid(int by_call) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_clock_nanosleep),
        ALLOW(SYS_newfstatat),
        ALLOW(SYS_brk),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
    if (by_call) must(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
    else must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "prctl");
}

int main(int argc, char **argv) {
    size_t n = 8 * MiB;
    uint64_t *p = malloc(n);
    double end = end_time() / 4 + now() * 3 / 4;
    do {
        fill(p, n, 1);
        usleep(3000);
    } while (now() < end);
    forbid(argc > 1 && argv);
    for (int i = 0; i < 100; i++) {
        usleep(1000);
        check(p, n, 1, "afterwards");
        free(malloc(MiB));
    }
    return done();
}
