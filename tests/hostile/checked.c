/* The functions that programs call that are built with _FORTIFY_SOURCE, into memory that may be
 * armed. */
#define _FORTIFY_SOURCE 2
#include "hostile.h"
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

/* Known to the compiler, so that it has the room checked; how much of it is used is not. */
#define ROOM (2 * MiB)
#define SMALL (4 * PAGE)
static volatile size_t all = ROOM, small = SMALL;
static volatile int flags = O_RDWR, one = 1;

static void expect(const char *what, long have, long want) {
    if (have == want) return;
    fprintf(stderr, "%s: %ld instead of %ld (%s)\n", what, have, want, strerror(errno));
    wrong_bytes++;
}

/* Memory that was written, and a while in which it is armed. */
static void settle(void *p, size_t bytes) {
    memset(p, 1, bytes);
    usleep(1500);
    errno = 0;
}

static void expect_in(const char *what, long have, const char *in) {
    expect(what, have, ROOM);
    check((const uint64_t *)(const void *)in, ROOM, 9, what);
}

static void whole_files(int fd, FILE *f) {
    char *in = malloc(ROOM);
    must(in != NULL, "malloc");
    settle(in, ROOM);
    must(!lseek(fd, 0, SEEK_SET), "lseek");
    expect_in("__read_chk", read(fd, in, all), in);
    settle(in, ROOM);
    expect_in("__pread_chk", pread(fd, in, all, 0), in);
    settle(in, ROOM);
    expect_in("__pread64_chk", pread64(fd, in, all, 0), in);
    rewind(f);
    settle(in, ROOM);
    expect_in("__fread_chk", (long)fread(in, 1, all, f), in);
    rewind(f);
    settle(in, ROOM);
    expect_in("__fread_unlocked_chk", (long)fread_unlocked(in, 1, all, f), in);
    free(in);
}

static void sockets(const char *out) {
    char *in = malloc(ROOM);
    int s[2];
    must(in != NULL && !socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
    for (int way = 0; way < 2; way++) {
        must(write(s[0], out, SMALL) == (ssize_t)SMALL, "write");
        settle(in, ROOM);
        ssize_t n = way ? recv(s[1], in, all, 0) : recvfrom(s[1], in, all, 0, NULL, NULL);
        expect(way ? "__recv_chk" : "__recvfrom_chk", n, SMALL);
    }
    settle(in, ROOM);
    struct pollfd *p = (struct pollfd *)(void *)in;
    struct timespec none = {0, 0};
    p->fd = s[1], p->events = POLLOUT;
    usleep(1500);
    expect("__poll_chk", poll(p, (nfds_t)one, 0), 1);
    usleep(1500);
    expect("__ppoll_chk", ppoll(p, (nfds_t)one, &none, NULL), 1);
    close(s[0]);
    close(s[1]);
    free(in);
}

static void paths(const char *folder) {
    char *in = malloc(SMALL * 32), *big = in + SMALL, *link = malloc(SMALL * 32);
    must(in != NULL && link != NULL, "malloc");
    settle(link, SMALL * 32);
    snprintf(link, SMALL, "%s/link", folder);
    must(!symlink("12345", link), "symlink");
    settle(big, SMALL);
    expect("__readlink_chk", readlink(link, big, small), 5);
    settle(big, SMALL);
    expect("__readlinkat_chk", readlinkat(AT_FDCWD, link, big, small), 5);
    settle(big, SMALL);
    expect("__getcwd_chk", getcwd(big, small) == big, 1);
    settle(big, SMALL);
    expect("__realpath_chk", realpath("/", big) == big, 1);
    must(!unlink(link), "unlink");
    snprintf(link, SMALL, "%s/file", folder);
    for (int way = 0; way < 4; way++) {
        usleep(1500);
        int fd = way == 0   ? open(link, flags)
                 : way == 1 ? open64(link, flags)
                 : way == 2 ? openat(AT_FDCWD, link, flags)
                            : openat64(AT_FDCWD, link, flags);
        expect("__open_2", fd >= 0, 1);
        close(fd);
    }
    free(in);
    free(link);
}

int main(void) {
    uint64_t *out = malloc(ROOM);
    char folder[] = "/tmp/hostile-checked-XXXXXX", path[64];
    must(out != NULL && mkdtemp(folder) != NULL, "mkdtemp");
    fill(out, ROOM, 9);
    snprintf(path, sizeof path, "%s/file", folder);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    must(fd >= 0 && write(fd, out, ROOM) == (ssize_t)ROOM, "write");
    FILE *f = fdopen(dup(fd), "r");
    must(f != NULL, "fdopen");
    double end = end_time();
    do {
        whole_files(fd, f);
        sockets((const char *)out);
        paths(folder);
        check(out, ROOM, 9, "what was written");
    } while (now() < end);
    fclose(f);
    must(!remove(path) && !remove(folder), "remove");
    return done();
}
