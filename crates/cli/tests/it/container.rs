//! The filter of system calls that Docker puts around a container unless told otherwise, without
//! Docker: a program that installs the same and becomes another.
//!
//! What is allowed is a fact of its default profile (github.com/moby/profiles,
//! seccomp/default.json, commit 02e898b), for x86-64 and a container without capabilities that
//! matter here: everything else fails with EPERM, but `clone3`, which fails with ENOSYS, and
//! `clone` of new name spaces. Its conditions on `socket` and `personality` are left out: they
//! forbid nothing that homenode or the tests' programs ask for.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::support::plain;

/// Names of system calls.
const ALLOWED: &str = "\
accept accept4 access adjtimex alarm arch_prctl bind brk cachestat capget capset chdir chmod chown \
    clock_adjtime clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range creat \
    dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait \
    epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate \
    fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr \
    flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait \
    futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu getcwd getdents getdents64 \
    getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority \
    getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday \
    getuid getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy \
    io_getevents io_pgetevents io_setup io_submit ioctl ioprio_get ioprio_set kill landlock_add_rule \
    landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listmount listxattr \
    llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier memfd_create \
    memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap modify_ldt mprotect \
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv \
    msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause \
    personality pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl \
    pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6 ptrace \
    pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg \
    remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction \
    rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait \
    rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr \
    sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam \
    sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg \
    sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer \
    setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr \
    shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socket socketpair splice stat statfs \
    statmount statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create \
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime \
    times tkill truncate umask uname unlink unlinkat uretprobe utime utimensat utimes vfork vmsplice wait4 \
    waitid write writev";

const HEAD: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define FIELD(f) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, f))
#define IF(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1)
#define ANSWER(a) BPF_STMT(BPF_RET | BPF_K, a)
#define NEW_SPACES 0x7e020000
int main(int argc, char **argv) {
    struct sock_filter code[] = {
        FIELD(nr),
        IF(SYS_clone3), ANSWER(SECCOMP_RET_ERRNO | 38),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        FIELD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_SPACES, 1, 0),
        ANSWER(SECCOMP_RET_ALLOW),
        ANSWER(SECCOMP_RET_ERRNO | 1),
"#;

const TAIL: &str = r#"
        ANSWER(SECCOMP_RET_ERRNO | 1),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    (void)argc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        puts("skipped: no filter of system calls can be installed here");
        return 0;
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
"#;

/// System calls that Linux 4.18 (RHEL 8) lacks, or that a kernel may be built without. Each fails
/// with ENOSYS.
const YOUNG: &str = "\
clone3 close_range copy_file_range epoll_pwait2 execveat faccessat2 futex_waitv get_mempolicy io_uring_setup \
    mbind membarrier memfd_create move_pages openat2 perf_event_open pidfd_open pidfd_send_signal preadv2 \
    process_madvise process_vm_readv pwritev2 renameat2 rseq set_mempolicy set_mempolicy_home_node statx \
    userfaultfd";

const OLD_HEAD: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define LACKS(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38)
int main(int argc, char **argv) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
"#;

const OLD_TAIL: &str = r#"
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
"#;

/// The program, built in a folder: its arguments are another program and its arguments. `None`:
/// skipped.
pub fn filter(dir: &Path) -> Option<PathBuf> {
    let mut source = HEAD.to_owned();
    for name in ALLOWED.split_whitespace() {
        // What these headers do not know yet cannot be asked for by what is built with them.
        let _ =
            writeln!(source, "#ifdef SYS_{name}\n        IF(SYS_{name}), ANSWER(SECCOMP_RET_ALLOW),\n#endif");
    }
    source.push_str(TAIL);
    plain(dir, "container", &source)
}

/// A program as [`filter`], whose filter stands for an old kernel.
pub fn old_kernel(dir: &Path) -> Option<PathBuf> {
    let mut source = OLD_HEAD.to_owned();
    for name in YOUNG.split_whitespace() {
        let _ = writeln!(source, "#ifdef SYS_{name}\n        LACKS(SYS_{name}),\n#endif");
    }
    source.push_str(OLD_TAIL);
    // What follows the answer to all other calls.
    source.push_str(TAIL.split_once("1),\n").unwrap().1);
    plain(dir, "old-kernel", &source)
}
