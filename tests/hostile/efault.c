/* Every system call by its number, and every function of the C library that hands a pointer to the
 * kernel, with pointers into armed memory. Each must answer as with pointers into plain memory.
 * "calls.inc" has the calls, made from the table of the front end of `syscall`. Each is made with
 * several descriptors, because the kernel often rejects a descriptor before it looks at a
 * pointer. */
#include "hostile.h"
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

struct call {
    const char *name;
    long number; /* -1: a function of this name */
    const char *how; /* an argument each: p a pointer, n a small number of things, f a descriptor, 0 a zero */
};

static const struct call calls[] = {
#include "calls.inc"
};

enum { EACH = 16 << 10, ARGS = 6, FDS = 5 };

static char *armed, *plain;
static int fds[FDS];
static long on_armed, made;

static long make(const struct call *c, char *memory, int fd, long *error) {
    long a[ARGS] = {0};
    memset(memory, 0, ARGS * EACH);
    for (int i = 0; i < ARGS && c->how[i]; i++) {
        if (c->how[i] == 'p') a[i] = (long)(memory + i * EACH + 64);
        if (c->how[i] == 'n') a[i] = 64;
        if (c->how[i] == 'f') a[i] = fd;
    }
    if (memory == armed) {
        /* Until it is taken away again; what was just written is away in about a millisecond. */
        double end = now() + 0.02;
        while (getenv("HOMENODE_RUN_DIR") && now() < end && !away(memory, ARGS * EACH)) usleep(300);
        on_armed += away(memory, ARGS * EACH) > 0;
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
    }
    *error = errno;
    return r;
}

int main(void) {
    size_t n = 4 * MiB;
    armed = malloc(n);
    memset(armed, 0, n);
    plain = mmap(NULL, ARGS * EACH + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[] = "/tmp/homenode-efault-XXXXXX";
    fds[0] = mkstemp(path);
    unlink(path);
    fds[1] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    fds[2] = epoll_create1(0);
    fds[3] = open("/tmp", O_RDONLY | O_DIRECTORY);
    fds[4] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    must(plain != MAP_FAILED && fds[0] >= 0 && fds[2] >= 0 && fds[3] >= 0 && fds[4] >= 0, "descriptors");
    wait_until_armed(armed, n, "memory");
    long wrong = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct call *c = &calls[i];
        for (int k = 0; k < (strchr(c->how, 'f') ? FDS : 1); k++) {
            long e1, e2, r1 = make(c, plain, fds[k], &e1), r2 = make(c, armed, fds[k], &e2);
            int bad1 = r1 == -1 && e1 == EFAULT, bad2 = r2 == -1 && e2 == EFAULT;
            if (bad2 && !bad1) wrong++, fprintf(stderr, "%s%s (%d): EFAULT\n", c->name, c->number < 0 ? "()" : "", k);
        }
    }
    fprintf(stderr, "%ld calls, %ld of them on armed memory\n", made, on_armed);
    if (getenv("HOMENODE_RUN_DIR") && on_armed * 2 < made) return 3;
    wrong_bytes = wrong;
    return done();
}
