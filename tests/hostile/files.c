/* read, fread, pread, readv, write, fwrite with buffers that may be armed. One read began long
 * before; some go beyond a file's end. */
#include "hostile.h"
#include <sys/uio.h>

static size_t n = 2 * MiB;
static int slow[2];
static uint64_t *late;

static void *late_reader(void *arg) {
    (void)arg;
    size_t have = 0;
    while (have < n) {
        ssize_t r = read(slow[0], (char *)late + have, n - have);
        must(r > 0, "read of a pipe");
        have += (size_t)r;
    }
    return NULL;
}

/* What asks for more than there is gets what there is, and the rest of its buffer stays as it
 * was. */
static void short_reads(FILE *f, uint64_t *in) {
    /* Not whole pages. */
    size_t have = n / 2 + 123 * 8;
    int fd = fileno(f);
    must(!fflush(f) && !ftruncate(fd, (off_t)have), "ftruncate");
    for (int way = 0; way < 4; way++) {
        struct iovec v[2] = {{in, n / 4}, {(char *)in + n / 4, n - n / 4}};
        fill(in, n, 5);
        rewind(f);
        must(!lseek(fd, 0, SEEK_SET), "lseek");
        usleep(1500);
        ssize_t got = way == 0   ? (ssize_t)fread(in, 1, n, f)
                      : way == 1 ? read(fd, in, n)
                      : way == 2 ? pread(fd, in, n, 0)
                                 : preadv(fd, v, 2, 0);
        if (got != (ssize_t)have) wrong_bytes++, fprintf(stderr, "short read %d: %zd instead of %zu\n", way, got, have);
        if (way == 0 && (!feof(f) || ferror(f))) wrong_bytes++, fprintf(stderr, "fread: no end of the file\n");
        check(in, have, 9, "a short read");
        for (size_t i = have / 8; i < n / 8; i++) wrong_bytes += in[i] == value(i, 5) ? 0 : 8;
        if (wrong_bytes) fprintf(stderr, "behind short read %d: %ld wrong bytes in all\n", way, wrong_bytes);
        /* At the end there is nothing to be had. */
        usleep(1500);
        got = way == 0 ? (ssize_t)fread(in, 1, n, f) : pread(fd, in, n, (off_t)have);
        if (got != 0) wrong_bytes++, fprintf(stderr, "read at the end: %zd\n", got);
        check(in, have, 9, "after a read at the end");
    }
}

int main(void) {
    uint64_t *out = malloc(n), *in = malloc(n);
    fill(out, n, 9);
    FILE *f = tmpfile();
    must(f != NULL, "tmpfile");
    int fd = fileno(f);
    double end = end_time();
    while (now() < end) {
        must(pwrite(fd, out, n, 0) == (ssize_t)n, "pwrite");
        memset(in, 0, n);
        usleep(700);
        must(pread(fd, in, n, 0) == (ssize_t)n, "pread");
        check(in, n, 9, "pread");
        usleep(700);
        rewind(f);
        must(fwrite(out, 1, n, f) == n && !fflush(f), "fwrite");
        memset(in, 0, n);
        usleep(700);
        rewind(f);
        must(fread(in, 1, n, f) == n, "fread");
        check(in, n, 9, "fread");
        struct iovec v[6];
        for (size_t i = 0; i < 6; i++) v[i] = (struct iovec){(char *)in + i * n / 8, n / 8};
        memset(in, 0, n);
        usleep(700);
        must(preadv(fd, v, 6, 0) == (ssize_t)(n / 8 * 6), "preadv");
        check(in, n / 8 * 6, 9, "preadv");
        short_reads(f, in);
        /* A read that waits in the kernel while arming goes on. */
        late = malloc(n);
        fill(late, n, 0);
        must(!pipe(slow), "pipe");
        pthread_t t;
        must(!pthread_create(&t, NULL, late_reader, NULL), "pthread_create");
        for (size_t at = 0; at < n; at += n / 8) {
            usleep(1500);
            must(write(slow[1], (char *)out + at, n / 8) == (ssize_t)(n / 8), "write");
        }
        pthread_join(t, NULL);
        check(late, n, 9, "a read that began before");
        close(slow[0]);
        close(slow[1]);
        free(late);
    }
    return done();
}
