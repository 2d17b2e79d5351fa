/* Every way in which a process gives up privileges or changes its identity, with or without a
 * second thread, and what it sees of itself afterwards. The output is compared with a run without
 * homenode. argv[1]: the way. HOSTILE_ARMED: memory is armed before. */
#include "hostile.h"
#include "security.h"
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static size_t n = 4 * MiB;
static uint64_t *p;

static int stop;
static void *beside(void *unused) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) usleep(100);
    return unused;
}

static long set_capabilities(int by_number) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    extern int capset(struct __user_cap_header_struct *, const struct __user_cap_data_struct *);
    return by_number ? syscall(SYS_capset, &header, none) : capset(&header, none);
}

#define WAY(name) if (!strcmp(way, name))

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    p = malloc(n);
    fill(p, n, 4);
    if (getenv("HOSTILE_ARMED")) wait_until_armed(p, n, "its memory");
    pthread_t t;
    int threads = strstr(way, "beside") != NULL;
    if (threads) must(!pthread_create(&t, NULL, beside, NULL), "pthread_create");
    WAY("setuid") tell(way, setuid(65534));
    WAY("setuid-beside") tell(way, setuid(65534));
    WAY("seteuid") { tell(way, seteuid(65534)); tell("back", seteuid(0)); }
    WAY("setreuid") tell(way, setreuid(65534, 65534));
    WAY("setresuid") tell(way, setresuid(65534, 65534, 65534));
    WAY("setresuid-beside") tell(way, setresuid(65534, 65534, 65534));
    WAY("setresuid-by-number") tell(way, syscall(SYS_setresuid, 65534, 65534, 65534));
    WAY("setgid") tell(way, setgid(65534));
    WAY("setregid") tell(way, setregid(65534, 65534));
    WAY("setresgid") tell(way, setresgid(65534, 65534, 65534));
    WAY("setgroups") { gid_t g[] = {1, 2, 3}; tell(way, setgroups(3, g)); }
    WAY("initgroups") tell(way, initgroups("root", 7));
    WAY("capset") tell(way, set_capabilities(0));
    WAY("capset-by-number") tell(way, set_capabilities(1));
    /* A thread that lost its capabilities cannot follow the others: glibc aborts where another
     * can. */
    WAY("capset-then-setuid") { tell(way, set_capabilities(0)); tell("setuid", setuid(65534)); }
    WAY("setfsuid") { setfsuid(65534); tell(way, setfsuid(65534)); }
    WAY("no-new-privileges") tell(way, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    WAY("no-new-privileges-beside") tell(way, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    WAY("bounding-set") tell(way, prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0));
    WAY("new-users") tell(way, unshare(CLONE_NEWUSER));
    WAY("new-users-beside") tell(way, unshare(CLONE_NEWUSER));
    WAY("new-users-by-number") tell(way, syscall(SYS_unshare, CLONE_NEWUSER));
    WAY("new-processes") { tell(way, unshare(CLONE_NEWPID)); pid_t c = fork(); if (!c) _exit(0); tell("waited", waitpid(c, NULL, 0) == c); }
    WAY("new-mounts") tell(way, unshare(CLONE_NEWNS));
    WAY("join") { int fd = open("/proc/self/ns/net", O_RDONLY); tell(way, setns(fd, 0)); }
    if (threads) __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST), pthread_join(t, NULL);
    tell_threads();
    check(p, n, 4, "memory");
    return wrong_bytes != 0;
}
