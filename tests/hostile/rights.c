/* Every way in which a process gives up rights, takes others or changes its surroundings, by
 * everybody who can do it, and what each thread has afterwards. The ways are the product of two
 * tables. As in privileges.c, a run without homenode says what is right. argv[1]: WHO/CHANGE, or
 * --list. HOSTILE_ARMED: memory is armed before. */
#include "hostile.h"
#include "security.h"
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern int capset(struct __user_cap_header_struct *, const struct __user_cap_data_struct *);
extern int capget(struct __user_cap_header_struct *, struct __user_cap_data_struct *);

static size_t n = 2 * MiB;
static uint64_t *p;

/* What changes. Each answers what the call answered. ------------------------------------------ */

static long capabilities(uint64_t keep, int by_number) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (capget(&header, data)) return -1;
    for (int i = 0; i < 2; i++) {
        uint32_t half = (uint32_t)(keep >> 32 * i);
        data[i].effective &= half, data[i].permitted &= half, data[i].inheritable &= half;
    }
    return by_number ? syscall(SYS_capset, &header, data) : capset(&header, data);
}
static long filter(int flags) {
    struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog program = {1, all};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (flags < 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}
static long landlock(void) {
    struct landlock_ruleset_attr what = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    int fd = (int)syscall(SYS_landlock_create_ruleset, &what, sizeof what, 0);
    if (fd < 0) return -1;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long r = syscall(SYS_landlock_restrict_self, fd, 0);
    close(fd);
    return r;
}
static long joins(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    long r = fd < 0 ? -1 : setns(fd, 0);
    int e = errno;
    close(fd);
    errno = e;
    return r;
}
static long limits(int what, rlim_t to) {
    struct rlimit l = {to, to};
    return setrlimit(what, &l);
}
static long ambient(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (capget(&header, data)) return -1;
    data[0].inheritable |= data[0].permitted & 1 << CAP_NET_RAW;
    if (capset(&header, data)) return -1;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0);
}
static long prisoner(void) {
    char path[] = "/tmp/homenode-rights-XXXXXX";
    if (!mkdtemp(path)) return -1;
    long r = chroot(path);
    if (r) rmdir(path);
    else rmdir("."), r = chdir("/");
    return r;
}
static long several_groups(void) {
    gid_t g[] = {1, 2, 3};
    return setgroups(3, g);
}
static long groups_by_number(void) {
    gid_t g[] = {4, 5};
    return syscall(SYS_setgroups, 2, g);
}
static long there_and_back(void) {
    if (seteuid(65534)) return -1;
    return seteuid(0);
}
static long as_a_server(void) {
    if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) return -1;
    return setuid(0) == -1 ? 0 : -2;
}
static long keeps_capabilities(void) {
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setresuid(65534, 65534, 65534)) return -1;
    return capabilities(1 << CAP_NET_RAW, 0);
}
static long all_of_the_bounding_set(void) {
    for (int i = 0; i <= CAP_LAST_CAP; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) && errno != EINVAL) return -1;
    return 0;
}

#define C(name, call) static long name(void) { return call; }
C(uid, setuid(65534)) C(euid, seteuid(65534)) C(reuid, setreuid(65534, 65534)) C(resuid, setresuid(65534, 65534, 65534))
C(uid_stays, setuid(0)) C(uid_by_number, syscall(SYS_setuid, 65534)) C(reuid_by_number, syscall(SYS_setreuid, 65534, 65534))
C(resuid_by_number, syscall(SYS_setresuid, 65534, 65534, 65534)) C(fsuid, (setfsuid(65534), setfsuid(65534)))
C(gid, setgid(65534)) C(egid, setegid(65534)) C(regid, setregid(65534, 65534)) C(resgid, setresgid(65534, 65534, 65534))
C(gid_by_number, syscall(SYS_setgid, 65534)) C(resgid_by_number, syscall(SYS_setresgid, 65534, 65534, 65534))
C(fsgid, (setfsgid(65534), setfsgid(65534))) C(no_groups, setgroups(0, NULL)) C(initial_groups, initgroups("root", 7))
C(no_capabilities, capabilities(0, 0)) C(no_capabilities_by_number, capabilities(0, 1))
C(without_nice, capabilities(~(1ull << CAP_SYS_NICE), 0)) C(without_ptrace, capabilities(~(1ull << CAP_SYS_PTRACE), 0))
C(keepcaps, prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)) C(one_of_the_bounding_set, prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0))
C(no_ambient, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
C(secure_bits, prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
C(no_new_privileges, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
C(no_new_privileges_by_number, syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
C(filtered, filter(-1)) C(filtered_by_number, filter(0)) C(all_filtered, filter(SECCOMP_FILTER_FLAG_TSYNC))
C(new_users, unshare(CLONE_NEWUSER)) C(new_users_by_number, syscall(SYS_unshare, CLONE_NEWUSER))
C(new_mounts, unshare(CLONE_NEWNS)) C(new_names, unshare(CLONE_NEWUTS)) C(new_queues, unshare(CLONE_NEWIPC))
C(new_net, unshare(CLONE_NEWNET)) C(new_groups_of_control, unshare(CLONE_NEWCGROUP))
C(new_processes, unshare(CLONE_NEWPID)) C(new_all, unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS))
C(own_files, unshare(CLONE_FILES)) C(own_folder, unshare(CLONE_FS))
C(joins_net, joins("/proc/self/ns/net")) C(joins_names, joins("/proc/self/ns/uts")) C(joins_queues, joins("/proc/self/ns/ipc"))
C(joins_mounts, joins("/proc/self/ns/mnt")) C(joins_users, joins("/proc/self/ns/user"))
C(new_root, chroot("/")) C(session, setsid() > 0 ? 0 : -1) C(group_of_processes, setpgid(0, 0))
C(undumpable, prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) C(reaper, prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
C(no_huge_pages, prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)) C(few_descriptors, limits(RLIMIT_NOFILE, 16))
C(no_locked_memory, limits(RLIMIT_MEMLOCK, 0)) C(no_processes, limits(RLIMIT_NPROC, 0)) C(no_files, limits(RLIMIT_FSIZE, 1 << 20))
C(small_stack, limits(RLIMIT_STACK, 1 << 20)) C(nice_19, nice(19) == 19 ? 0 : -1)
/* Above what the library of homenode takes in the next program. */
C(little_memory, limits(RLIMIT_AS, 1 << 30)) C(little_data, limits(RLIMIT_DATA, 256 << 20))
C(persona, personality(ADDR_NO_RANDOMIZE) < 0 ? -1 : 0) C(mask, umask(0777) == 0777)

#define CHANGE(f, shows) {#f, f, shows}
/* Whether the change is one of rights: then no thread of homenode's may be left. */
static const struct { const char *name; long (*f)(void); int shows; } changes[] = {
    CHANGE(uid, 1), CHANGE(euid, 1), CHANGE(reuid, 1), CHANGE(resuid, 1), CHANGE(uid_stays, 1), CHANGE(uid_by_number, 1),
    CHANGE(reuid_by_number, 1), CHANGE(resuid_by_number, 1), CHANGE(fsuid, 1), CHANGE(gid, 1), CHANGE(egid, 1),
    CHANGE(regid, 1), CHANGE(resgid, 1), CHANGE(gid_by_number, 1), CHANGE(resgid_by_number, 1), CHANGE(fsgid, 1),
    CHANGE(no_groups, 1), CHANGE(several_groups, 1), CHANGE(groups_by_number, 1), CHANGE(initial_groups, 1),
    CHANGE(there_and_back, 1), CHANGE(as_a_server, 1), CHANGE(no_capabilities, 1), CHANGE(no_capabilities_by_number, 1),
    CHANGE(without_nice, 1), CHANGE(without_ptrace, 1), CHANGE(keeps_capabilities, 1), CHANGE(keepcaps, 1),
    CHANGE(ambient, 1), CHANGE(no_ambient, 1), CHANGE(one_of_the_bounding_set, 1), CHANGE(all_of_the_bounding_set, 1),
    CHANGE(secure_bits, 1), CHANGE(no_new_privileges, 1), CHANGE(no_new_privileges_by_number, 1), CHANGE(filtered, 1),
    CHANGE(filtered_by_number, 1), CHANGE(all_filtered, 1), CHANGE(landlock, 1), CHANGE(new_users, 1),
    CHANGE(new_users_by_number, 1), CHANGE(new_mounts, 1), CHANGE(new_names, 1), CHANGE(new_queues, 1),
    CHANGE(new_net, 1), CHANGE(new_groups_of_control, 1), CHANGE(new_processes, 1), CHANGE(new_all, 1),
    CHANGE(own_files, 1), CHANGE(own_folder, 1), CHANGE(joins_net, 1), CHANGE(joins_names, 1), CHANGE(joins_queues, 1),
    CHANGE(joins_mounts, 1), CHANGE(joins_users, 1), CHANGE(new_root, 0), CHANGE(prisoner, 0), CHANGE(session, 0),
    CHANGE(group_of_processes, 0), CHANGE(undumpable, 0), CHANGE(reaper, 0), CHANGE(no_huge_pages, 0),
    CHANGE(few_descriptors, 0), CHANGE(no_locked_memory, 0), CHANGE(no_processes, 0), CHANGE(no_files, 0),
    CHANGE(small_stack, 0), CHANGE(little_memory, 0), CHANGE(little_data, 0), CHANGE(nice_19, 0), CHANGE(persona, 0), CHANGE(mask, 0),
};
enum { CHANGES = sizeof changes / sizeof *changes };

/* Who changes it. ----------------------------------------------------------------------------- */

static int the_change, stop;

static void change(void) {
    errno = 0;
    tell(changes[the_change].name, changes[the_change].f());
    check(p, n, 4, "memory");
    for (size_t i = 0; i < n / 8; i += 64) ((volatile uint64_t *)p)[i] = value(i, 4);
    if (changes[the_change].shows) tell_threads();
}

static void *beside(void *unused) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) usleep(100);
    return unused;
}
static void *changes_it(void *unused) {
    change();
    return unused;
}
static void ends_as(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    printf("child: %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void alone(void) { change(); }
static void with_other(void) {
    pthread_t t;
    must(!pthread_create(&t, NULL, beside, NULL), "pthread_create");
    change();
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(t, NULL);
}
static void other(void) {
    pthread_t t;
    must(!pthread_create(&t, NULL, changes_it, NULL), "pthread_create");
    pthread_join(t, NULL);
}
static void child(void) {
    pid_t c = fork();
    if (!c) {
        change();
        fflush(stdout);
        _exit(wrong_bytes != 0);
    }
    ends_as(c);
}
/* What the next program and the next child get. */
static void and_fork(void) {
    change();
    pid_t c = fork();
    if (!c) {
        check(p, n, 4, "memory");
        _exit(wrong_bytes ? 1 : 9);
    }
    tell("fork", c < 0 ? -1 : 0);
    if (c > 0) ends_as(c);
}
static void and_exec(void) {
    change();
    fflush(stdout);
    execl("/bin/sh", "sh", "-c", "echo executed; umask; ulimit -n", NULL);
    tell("exec", -1);
}

static const struct { const char *name; void (*f)(void); } whos[] = {
    {"alone", alone}, {"beside", with_other}, {"other", other}, {"child", child}, {"and-fork", and_fork},
    {"and-exec", and_exec},
};
enum { WHOS = sizeof whos / sizeof *whos };

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "--list";
    if (!strcmp(way, "--list")) {
        for (int w = 0; w < WHOS; w++)
            for (int c = 0; c < CHANGES; c++) printf("%s/%s\n", whos[w].name, changes[c].name);
        return 0;
    }
    const char *slash = strchr(way, '/');
    must(slash != NULL, way);
    void (*who)(void) = NULL;
    the_change = -1;
    for (int w = 0; w < WHOS; w++)
        if (!strncmp(way, whos[w].name, (size_t)(slash - way)) && !whos[w].name[slash - way]) who = whos[w].f;
    for (int c = 0; c < CHANGES; c++)
        if (!strcmp(slash + 1, changes[c].name)) the_change = c;
    must(who && the_change >= 0, way);
    p = malloc(n);
    fill(p, n, 4);
    if (getenv("HOSTILE_ARMED")) wait_until_armed(p, n, "its memory");
    setvbuf(stdout, NULL, _IOFBF, 64 << 10);
    who();
    check(p, n, 4, "memory");
    return wrong_bytes != 0;
}
