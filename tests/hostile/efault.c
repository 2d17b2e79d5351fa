/* Every system call by its number, and every function of the C library that hands a pointer to the
 * kernel, with pointers into armed memory: as a buffer, as a path, as a vector of buffers, and as
 * the place of a result. Each must do the same as with pointers into plain memory: same result,
 * same error, and it writes to the same arguments. "calls.inc" has the calls, made from the table
 * of the front end of `syscall`. Each is made with several descriptors, because the kernel often
 * rejects a descriptor before it looks at a pointer. */
#include "hostile.h"
#include <dirent.h>
#include <dlfcn.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

/* An argument each: p a pointer to zeros, s to a path, R to "r", D to the path of a folder, X to a
 * template of a path, v to vectors, m to a message, r to a message with a place for its sender, M
 * to messages; n a small number of bytes, c the number of vectors or messages; f a descriptor, E
 * one of an event; I this process, T this thread, U a signal, N a request of ioctl; a digit
 * itself. */
struct call {
    const char *name;
    long number; /* -1: a function of this name */
    const char *how;
};

static const struct call calls[] = {
#include "calls.inc"
};

enum { EACH = 8192, ARGS = 6, FDS = 7, BYTES = 64, AT = 64, PLACES = ARGS * EACH };

static char *armed, *plain, *before;
static int fds[FDS], event, other, last;
static char folder[] = "/tmp/homenode-efault-XXXXXX", path[64], pattern[64];
static long on_armed, made;

/* Everything as it was before any call. */
static void restore(void) {
    static const char text[4 * BYTES] = "text";
    char drained[256];
    for (int fd = last + 1; fd < last + 24; fd++) close(fd);
    must(!ftruncate(fds[0], 0) && pwrite(fds[0], text, sizeof text, 0) == sizeof text, "a file");
    for (int i = 0; i < FDS; i++) lseek(fds[i], 0, SEEK_SET);
    while (recv(fds[1], drained, sizeof drained, MSG_DONTWAIT) >= 0) {}
    while (recv(other, drained, sizeof drained, MSG_DONTWAIT) >= 0) {}
    must(send(other, text, BYTES, 0) == BYTES && send(other, text, BYTES, 0) == BYTES, "messages");
    eventfd_t count;
    eventfd_read(event, &count);
    eventfd_write(event, 1);
    /* Watches are numbered. */
    int watches = inotify_init1(IN_NONBLOCK);
    must(watches >= 0 && dup3(watches, fds[6], 0) == fds[6] && !close(watches), "inotify");
    struct epoll_event e = {.events = EPOLLIN};
    must(!epoll_ctl(fds[2], EPOLL_CTL_MOD, event, &e), "an event");
    struct mq_attr at_once = {.mq_flags = O_NONBLOCK};
    mq_setattr(fds[5], &at_once, NULL);
    while (mq_receive(fds[5], drained, sizeof drained, NULL) >= 0) {}
    mq_send(fds[5], text, BYTES, 0);
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    must(fd >= 0 && write(fd, text, sizeof text) == sizeof text && !close(fd), path);
}

static void put_message(struct msghdr *m, char *place, int with_sender) {
    struct iovec *v = (struct iovec *)(void *)(place + 1024);
    v[0] = (struct iovec){place + 2048, BYTES / 2};
    v[1] = (struct iovec){place + PAGE, BYTES};
    m->msg_iov = v, m->msg_iovlen = 2;
    if (with_sender) m->msg_name = place + 1536, m->msg_namelen = 128, m->msg_control = place + PAGE + 1024, m->msg_controllen = 256;
}

static long argument(char kind, char *place, int fd) {
    char *at = place + AT;
    switch (kind) {
    case 's': return (long)strcpy(at, path);
    case 'R': return (long)strcpy(at, "r");
    case 'D': return (long)strcpy(at, folder);
    case 'X': return (long)strcpy(at, pattern);
    case 'v': {
        struct iovec *v = (struct iovec *)(void *)at;
        v[0] = (struct iovec){place + 2048, BYTES / 2};
        v[1] = (struct iovec){place + PAGE, BYTES};
        return (long)v;
    }
    case 'm': put_message((struct msghdr *)(void *)at, place, 0); return (long)at;
    case 'r': put_message((struct msghdr *)(void *)at, place, 1); return (long)at;
    case 'M': {
        struct mmsghdr *m = (struct mmsghdr *)(void *)at;
        for (int i = 0; i < 2; i++) put_message(&m[i].msg_hdr, place, 0);
        return (long)m;
    }
    case 'p': return (long)at;
    case 'n': return BYTES;
    case 'c': return 2;
    case 'f': return fd;
    case 'E': return event;
    case 'I': return getpid();
    case 'T': return (long)pthread_self();
    case 'U': return SIGUSR2;
    case 'N': return FIONREAD;
    default: return kind - '0';
    }
}

struct result {
    long value;
    int error;
    int wrote; /* a bit an argument */
};

/* Whether it is a descriptor that the call has made. Another thread may have one open for a moment,
 * so its number says nothing. */
static int is_new(long r) {
    if (r < 3 || r >= last + 24 || r == event || r == other) return 0;
    for (int i = 0; i < FDS; i++)
        if (r == fds[i]) return 0;
    return fcntl((int)r, F_GETFD) >= 0;
}

/* Addresses, and numbers that grow with time, are as good as each other. */
static long value_of(long r) {
    if (is_new(r)) return last + 1;
    return r > 1 << 20 || r < -4096 ? 1 << 20 : r;
}

static struct result make(const struct call *c, char *memory, int fd) {
    long a[ARGS] = {0};
    restore();
    memset(memory, 0, PLACES);
    for (int i = 0; i < ARGS && c->how[i]; i++) a[i] = argument(c->how[i], memory + i * EACH, fd);
    memcpy(before, memory, PLACES);
    if (memory == armed) {
        /* Until it is taken away again; what was just written is away in about a millisecond. */
        double end = now() + 0.02;
        while (getenv("HOSTILE_ARMED") && now() < end && !away(memory, PLACES)) usleep(300);
        on_armed += getenv("HOMENODE_RUN_DIR") && away(memory, PLACES) > 0;
        made++;
    }
    errno = 0;
    long r;
    if (c->number >= 0) {
        r = syscall(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    } else {
        long (*f)(long, long, long, long, long, long);
        *(void **)&f = dlsym(RTLD_DEFAULT, c->name);
        r = f ? f(a[0], a[1], a[2], a[3], a[4], a[5]) : 0;
        /* Most return an `int`. */
        if ((unsigned long)r >> 32 == 0) r = (int)r;
    }
    struct result result = {value_of(r), r == -1 || !r ? errno : 0, 0};
    for (int i = 0; i < ARGS; i++)
        result.wrote |= memcmp(memory + i * EACH, before + i * EACH, EACH) ? 1 << i : 0;
    /* The number of this CPU may be what was there. */
    if (!strcmp(c->name, "getcpu")) result.wrote = 0;
    return result;
}

int main(void) {
    size_t n = 4 * MiB;
    armed = malloc(n);
    memset(armed, 0, n);
    /* The first thread's stack is never armed. */
    char memory[2][PLACES + PAGE];
    plain = (char *)(((uintptr_t)memory[0] + PAGE - 1) & ~(PAGE - 1)), before = memory[1];
    must(mkdtemp(folder) != NULL, folder);
    snprintf(path, sizeof path, "%s/path", folder);
    snprintf(pattern, sizeof pattern, "%s/XXXXXX", folder);
    char name[64];
    snprintf(name, sizeof name, "%s/file", folder);
    fds[0] = open(name, O_RDWR | O_CREAT, 0600);
    int s[2];
    must(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s), "socketpair");
    fds[1] = s[0], other = s[1];
    fds[2] = epoll_create1(0);
    fds[3] = open(folder, O_RDONLY | O_DIRECTORY);
    fds[4] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    snprintf(name, sizeof name, "/homenode-efault-%d", (int)getpid());
    struct mq_attr about = {.mq_maxmsg = 4, .mq_msgsize = BYTES};
    fds[5] = mq_open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &about);
    if (fds[5] < 0) fds[5] = dup(fds[4]);
    mq_unlink(name);
    fds[6] = inotify_init1(IN_NONBLOCK);
    last = event = eventfd(1, EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN};
    must(fds[0] >= 0 && fds[3] >= 0 && fds[4] >= 0 && fds[6] >= 0 && !epoll_ctl(fds[2], EPOLL_CTL_ADD, event, &e), "descriptors");
    if (getenv("HOSTILE_ARMED")) wait_until_armed(armed, n, "memory");
    long wrong = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct call *c = &calls[i];
        for (int k = 0; k < (strchr(c->how, 'f') ? FDS : 1); k++) {
            struct result r1 = make(c, plain, fds[k]), r2 = make(c, armed, fds[k]);
            if (r1.value == r2.value && r1.error == r2.error && r1.wrote == r2.wrote) continue;
            wrong++;
            fprintf(stderr, "%s%s (%d): %ld %s, writes %x; on armed memory %ld %s, writes %x\n", c->name,
                    c->number < 0 ? "()" : "", k, r1.value, strerrorname_np(r1.error), (unsigned)r1.wrote, r2.value,
                    strerrorname_np(r2.error), (unsigned)r2.wrote);
        }
    }
    restore();
    DIR *d = opendir(folder);
    for (struct dirent *entry; (entry = readdir(d));) unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(folder);
    fprintf(stderr, "%ld calls, %ld of them on armed memory\n", made, on_armed);
    /* Watched by blocks, memory is away in parts only. */
    if (getenv("HOMENODE_RUN_DIR") && getenv("HOSTILE_ARMED") && on_armed * 20 < made) return 3;
    wrong_bytes = wrong;
    return done();
}
