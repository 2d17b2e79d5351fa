/* Small things that the kernel reads or writes, in memory that may be armed. */
#include "hostile.h"
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <threads.h>

/* Where the next thing goes: another page each time, which nobody has touched for a while. */
static char *block;
static const size_t size = 4 * MiB;
static void *place(void) {
    static size_t at;
    at = (at + 7 * PAGE + 64) % (size - 4 * PAGE);
    return block + at;
}

static void *fresh(size_t bytes) {
    void *p = memset(place(), 0, bytes);
    usleep(200);
    return p;
}

/* Writes there by the kernel alone; what was filled in first has been armed since. */
#define PUT(type, name, ...) \
    type *name = place(); \
    *name = (type)__VA_ARGS__; \
    usleep(200)
#define GET(type, name) type *name = fresh(sizeof(type))

static void expect(const char *what, int good) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    wrong_bytes++;
}

static void processes(void) {
    cpu_set_t *set = fresh(sizeof *set);
    expect("sched_getaffinity", !sched_getaffinity(0, sizeof *set, set));
    usleep(1500);
    expect("sched_setaffinity", !sched_setaffinity(0, sizeof *set, set));
    expect("pthread_getaffinity_np", !pthread_getaffinity_np(pthread_self(), sizeof *set, fresh(sizeof *set)));
    GET(struct rusage, used);
    expect("getrusage", !getrusage(RUSAGE_SELF, used));
    GET(struct tms, ticks);
    expect("times", times(ticks) != -1);
    GET(struct utsname, name);
    expect("uname", !uname(name) && name->sysname[0] == 'L');
    GET(struct sysinfo, info);
    expect("sysinfo", !sysinfo(info) && info->totalram > 0);
    GET(struct rlimit, limit);
    expect("getrlimit", !getrlimit(RLIMIT_NOFILE, limit) && limit->rlim_cur > 0);
    usleep(1500);
    expect("prlimit", !prlimit(0, RLIMIT_NOFILE, limit, NULL));
    gid_t *groups = fresh(64 * sizeof *groups);
    expect("getgroups", getgroups(64, groups) >= 0);
    pid_t child = fork();
    must(child >= 0, "fork");
    if (!child) _exit(7);
    GET(int, status);
    expect("waitpid", waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 7);
}

static void sockets(void) {
    int *s = fresh(2 * sizeof *s);
    expect("socketpair", !socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    PUT(socklen_t, n, sizeof(int));
    expect("getsockopt", !getsockopt(s[0], SOL_SOCKET, SO_TYPE, fresh(4), n) && *n == 4);
    PUT(int, on, 1);
    expect("setsockopt", !setsockopt(s[0], SOL_SOCKET, SO_KEEPALIVE, on, sizeof *on));
    PUT(socklen_t, m, sizeof(struct sockaddr_un));
    expect("getsockname", !getsockname(s[0], fresh(*m), m));
    fd_set *w = fresh(sizeof *w);
    FD_SET(s[0], w);
    PUT(struct timeval, none, {0, 0});
    expect("select", select(s[0] + 1, NULL, w, NULL, none) == 1 && FD_ISSET(s[0], w));
    PUT(struct timespec, zero, {0, 0});
    expect("pselect", pselect(s[0] + 1, NULL, w, NULL, zero, NULL) == 1);
    int e = epoll_create1(0);
    PUT(struct epoll_event, event, {.events = EPOLLOUT});
    expect("epoll_ctl", !epoll_ctl(e, EPOLL_CTL_ADD, s[0], event));
    expect("epoll_pwait", epoll_pwait(e, fresh(sizeof *event), 1, 0, NULL) == 1);
    close(e);
    close(s[0]);
    close(s[1]);
    int *p = fresh(2 * sizeof *p);
    expect("pipe", !pipe(p));
    close(p[0]);
    close(p[1]);
}

static void files(int from, int to) {
    PUT(off_t, at, 0);
    expect("sendfile", sendfile(to, from, at, 100) == 100 && *at == 100);
    PUT(off_t, source, 0);
    errno = 0;
    expect("copy_file_range", copy_file_range(from, source, to, NULL, 100, 0) == 100 || errno != EFAULT);
    PUT(struct flock, lock, {.l_type = F_WRLCK, .l_whence = SEEK_SET});
    expect("fcntl", !fcntl(to, F_SETLK, lock));
    GET(struct statfs, about);
    expect("fstatfs", !fstatfs(from, about) && about->f_bsize > 0);
    struct timespec *times = place();
    times[0] = times[1] = (struct timespec){1000, 0};
    usleep(1500);
    expect("futimens", !futimens(to, times));
}

static char *text(const char *name) {
    char *p = strcpy(place(), name);
    usleep(200);
    return p;
}

static void queues(void) {
    int q = msgget(IPC_PRIVATE, 0600), s = semget(IPC_PRIVATE, 2, 0600);
    must(q >= 0 && s >= 0, "msgget");
    struct { long kind; char text[8]; } *m = fresh(sizeof *m);
    m->kind = 1;
    usleep(1500);
    expect("msgsnd", !msgsnd(q, m, 8, 0));
    expect("msgrcv", msgrcv(q, fresh(sizeof *m), 8, 0, 0) == 8);
    GET(struct msqid_ds, about);
    expect("msgctl", !msgctl(q, IPC_STAT, about) && about->msg_qnum == 0);
    PUT(struct sembuf, up, {0, 1, 0});
    expect("semop", !semop(s, up, 1));
    unsigned short *values = fresh(2 * sizeof *values);
    expect("semctl", !semctl(s, 0, GETALL, values) && values[0] == 1);
    msgctl(q, IPC_RMID, NULL);
    semctl(s, 0, IPC_RMID);
    PUT(struct mq_attr, kind, {.mq_maxmsg = 2, .mq_msgsize = 64});
    mqd_t p = mq_open(text("/hostile"), O_CREAT | O_RDWR, 0600, kind);
    if (p == -1 && (errno == ENOSYS || errno == EACCES)) return;
    expect("mq_send", !mq_send(p, text("message"), 8, 1));
    GET(unsigned, first);
    expect("mq_receive", mq_receive(p, fresh(64), 64, first) == 8 && *first == 1);
    expect("mq_unlink", !mq_unlink(text("/hostile")));
    mq_close(p);
}

static void names(int fd) {
    expect("prctl", !prctl(PR_SET_NAME, text("hostile")) && !prctl(PR_GET_NAME, fresh(16)));
    expect("pthread_setname_np", !pthread_setname_np(pthread_self(), text("hostile")));
    errno = 0;
    expect("fsetxattr", !fsetxattr(fd, text("user.hostile"), text("x"), 1, 0) || errno != EFAULT);
    PUT(struct iovec, v, {place(), 100});
    usleep(1500);
    expect("pwritev2", pwritev2(fd, v, 1, 0, 0) == 100 && pwritev64v2(fd, v, 1, 0, 0) == 100);
    usleep(1500);
    expect("preadv64v2", preadv64v2(fd, v, 1, 0, 0) == 100);
    PUT(struct sigevent, how, {.sigev_notify = SIGEV_NONE});
    GET(timer_t, timer);
    expect("timer_create", !timer_create(CLOCK_MONOTONIC, how, timer) && !timer_delete(*timer));
    PUT(struct timespec, time, {0, 1000});
    expect("thrd_sleep", !thrd_sleep(time, fresh(sizeof *time)));
}

/* Longer than a stream's buffer: written from where it lies. */
static void long_text(FILE *f) {
    enum { LONG = 1 << 20 };
    static char *long_text;
    if (!long_text) memset(long_text = calloc(1, LONG), 'x', LONG - 1);
    usleep(1500);
    rewind(f);
    expect("fprintf", fprintf(f, "%d%s%g%s%s%s%.1f\n", 1, long_text, 1.5, "", "", "", 2.0) == LONG + 7 && !fflush(f));
    usleep(1500);
    expect("dprintf", dprintf(fileno(f), "%s", long_text) == LONG - 1);
    rewind(f);
    double x;
    expect("fscanf", fscanf(f, "1%*[x]%lf", &x) == 1 && x == 1.52);
    must(!ftruncate(fileno(f), 0), "ftruncate");
}

static void clocks(void) {
    PUT(struct timespec, time, {0, 1000});
    expect("nanosleep", !nanosleep(time, fresh(sizeof *time)));
    expect("clock_nanosleep", !clock_nanosleep(CLOCK_MONOTONIC, 0, time, NULL));
    expect("clock_gettime", !clock_gettime(CLOCK_PROCESS_CPUTIME_ID, fresh(sizeof *time)));
    int t = timerfd_create(CLOCK_MONOTONIC, 0);
    PUT(struct itimerspec, when, {{1, 0}, {1, 0}});
    expect("timerfd_settime", !timerfd_settime(t, 0, when, fresh(sizeof *when)));
    GET(struct itimerspec, left);
    expect("timerfd_gettime", !timerfd_gettime(t, left) && left->it_interval.tv_sec == 1);
    close(t);
    GET(struct itimerval, every);
    expect("getitimer", !getitimer(ITIMER_REAL, every));
    usleep(1500);
    expect("setitimer", !setitimer(ITIMER_REAL, every, NULL));
    sigset_t *pending = fresh(sizeof *pending);
    expect("sigpending", !sigpending(pending));
    expect("pthread_sigmask", !pthread_sigmask(SIG_BLOCK, NULL, fresh(sizeof *pending)));
    stack_t *stack = fresh(sizeof *stack);
    expect("sigaltstack", !sigaltstack(NULL, stack));
}

int main(void) {
    block = malloc(size);
    must(block != NULL, "malloc");
    memset(block, 1, size);
    FILE *a = tmpfile(), *b = tmpfile();
    must(a && b && write(fileno(a), block, 4096) == 4096, "tmpfile");
    double end = end_time();
    do {
        processes();
        sockets();
        files(fileno(a), fileno(b));
        clocks();
        queues();
        names(fileno(b));
        long_text(a);
        must(write(fileno(a), block, 4096) == 4096, "write");
    } while (now() < end);
    return done();
}
