/* Operations of the interpreter that hand memory to the kernel or to stdio.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
static void op_pipe(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]), *d = slot(a[1]);
    int fds[2];
    if (!s || !d) return;
    must(pipe(fds) == 0, "pipe");
    size_t n = least(least(s->n, d->n), 256 << 10), all = 0;
    for (size_t from = 0; from < n; from += 32 << 10) {
        size_t piece = least(n - from, 32 << 10);
        must(write(fds[1], s->p + from, piece) == (ssize_t)piece, "write to a pipe");
        ssize_t got = read(fds[0], d->p + from, piece);
        must(got >= 0, "read from a pipe");
        all += (size_t)got;
    }
    note(c, all);
    close(fds[0]);
    close(fds[1]);
}

static void op_file(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]), *d = slot(a[1]);
    if (!s || !d) return;
    size_t n = least(s->n, d->n);
    int fd = file_of(0);
    note(c, (uint64_t)write(fd, s->p, n));
    note(c, (uint64_t)pread(fd, d->p, n / 2, 64));
    must(lseek(fd, (off_t)(n / 2), SEEK_SET) >= 0, "lseek");
    note(c, (uint64_t)read(fd, d->p + n / 2, n - n / 2));
    close(fd);
}

/* vector FROM TO: the vectors lie in the slots, too. */
static void op_vector(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]), *d = slot(a[1]);
    if (!s || !d || s == d) return;
    size_t n = least(s->n, d->n) / 2;
    struct iovec *out = (struct iovec *)(s->p + s->n - 64), *in = (struct iovec *)(d->p + d->n - 64);
    struct iovec halves[2] = {{s->p, n / 2}, {s->p + n / 2, n / 2}};
    memcpy(out, halves, sizeof halves);
    struct iovec parts[2] = {{d->p + n / 4, n / 4}, {d->p, n / 4}};
    memcpy(in, parts, sizeof parts);
    int fd = file_of(0);
    note(c, (uint64_t)writev(fd, out, 2));
    note(c, (uint64_t)preadv(fd, in, 2, 16));
    close(fd);
    memset(out, 0, 64);
    memset(in, 0, 64);
}

/* message FROM TO: datagrams; headers, vectors and descriptors lie in the slots. */
static void op_message(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]), *d = slot(a[1]);
    int fds[2];
    if (!s || !d || s == d) return;
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0, "socketpair");
    for (size_t i = 0; i < 4; i++) {
        struct iovec *out = (struct iovec *)(s->p + 1024), *in = (struct iovec *)(d->p + 1024);
        struct msghdr *to = (struct msghdr *)(s->p + 2048), *from = (struct msghdr *)(d->p + 2048);
        *out = (struct iovec){s->p + PAGE / 2 + 1000, 2000 + i * 10};
        *in = (struct iovec){d->p + d->n - PAGE, 3000};
        *to = (struct msghdr){.msg_iov = out, .msg_iovlen = 1};
        *from = (struct msghdr){.msg_iov = in, .msg_iovlen = 1};
        if (a[2] % 2) usleep(300);
        note(c, (uint64_t)sendmsg(fds[0], to, 0));
        note(c, (uint64_t)recvmsg(fds[1], from, 0));
        memset(s->p + 1024, 0, 2048);
        memset(d->p + 1024, 0, 2048);
    }
    close(fds[0]);
    close(fds[1]);
}

static void op_stream(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]), *d = slot(a[1]);
    if (!s || !d || s == d) return;
    FILE *f = fdopen(file_of(0), "w+");
    must(f != NULL, "fdopen");
    size_t n = least(s->n, d->n) / 2;
    if (a[2] % 2) setvbuf(f, (char *)d->p + n, _IOFBF, 8192);
    note(c, fwrite(s->p, 1, n, f));
    fprintf(f, "%s %ld", "end", a[2]);
    rewind(f);
    note(c, fread(d->p, 1, n, f));
    char word[8];
    long number = 0;
    must(fscanf(f, "%7s %ld", word, &number) == 2 && number == a[2], "fscanf");
    fclose(f);
    /* What stdio left in its buffer is its own affair. */
    if (a[2] % 2) memset(d->p + n, 0, 8192);
}

/* ask SLOT: calls that fill memory with what differs from run to run; only their success counts. */
static void op_ask(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    char *p = (char *)s->p + (size_t)(a[1] % 8) * 512, *q = p + PAGE;
    memset(p, 0, PAGE);
    strcpy(q, "/proc/self");
    note(c, (uint64_t)stat(q, (struct stat *)p));
    note(c, getcwd(p, 2048) == p);
    note(c, (uint64_t)uname((struct utsname *)p));
    note(c, (uint64_t)getrusage(RUSAGE_SELF, (struct rusage *)p));
    note(c, (uint64_t)clock_gettime(CLOCK_REALTIME, (struct timespec *)p));
    note(c, (uint64_t)getrandom(p, 2000, 0));
    struct pollfd *polled = (struct pollfd *)p;
    *polled = (struct pollfd){.fd = -1};
    note(c, (uint64_t)poll(polled, 1, 0));
    note(c, (uint64_t)(sched_getaffinity(0, 128, (cpu_set_t *)p) > -1));
    note(c, (uint64_t)(readlink("/proc/self/exe", p, 512) > 0));
    *(struct timespec *)p = (struct timespec){.tv_nsec = 1000};
    note(c, (uint64_t)nanosleep((struct timespec *)p, (struct timespec *)q));
    fill(s->p ? (uint64_t *)s->p : NULL, least(s->n, 3 * PAGE), (uint64_t)a[1]);
}

static void op_sleep(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    usleep((useconds_t)a[0] % 20000);
}
