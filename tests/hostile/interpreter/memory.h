/* Operations of the interpreter on memory itself.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
static int file_of(size_t n) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, (off_t)n) == 0, "memfd_create");
    return fd;
}

static void *mapped(size_t n, int flags, int fd) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags, fd, 0);
    must(p != MAP_FAILED, "mmap");
    if (fd >= 0) close(fd);
    return p;
}

static void free_slot(struct slot *s) {
    switch (s->kind) {
    case EMPTY:
    case FIXED_ARRAY: break;
    case MALLOC:
    case CALLOC:
    case ALIGNED: free(s->p); break;
    default: must(munmap(s->p, s->n) == 0, "munmap");
    }
    s->kind = EMPTY;
}

/* alloc SLOT KIND BYTES SALT */
static void op_alloc(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    unsigned long which = (unsigned long)a[0] % SLOTS;
    struct slot *s = &slots[which];
    free_slot(s);
    s->n = ((size_t)a[2] + PAGE - 1) & ~(PAGE - 1);
    s->kind = (enum kind)(1 + (unsigned long)a[1] % FIXED_ARRAY);
    switch (s->kind) {
    case CALLOC: s->p = calloc(s->n, 1); break;
    case ALIGNED: must(posix_memalign((void **)&s->p, PAGE, s->n) == 0, "posix_memalign"); break;
    case ANONYMOUS: s->p = mapped(s->n, MAP_PRIVATE | MAP_ANONYMOUS, -1); break;
    case POPULATED: s->p = mapped(s->n, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1); break;
    case FILE_PRIVATE: s->p = mapped(s->n, MAP_PRIVATE, file_of(s->n)); break;
    case FILE_SHARED: s->p = mapped(s->n, MAP_SHARED, file_of(s->n)); break;
    case SHARED: s->p = mapped(s->n, MAP_SHARED | MAP_ANONYMOUS, -1); break;
    case FIXED_ARRAY:
        s->p = fixed[which];
        s->n = least(s->n, FIXED);
        break;
    default: s->p = malloc(s->n);
    }
    must(s->p != NULL, "memory");
    /* Without a salt, memory that the kernel has cleared stays untouched. */
    if (a[3] || s->kind == MALLOC || s->kind == ALIGNED || s->kind == FIXED_ARRAY) fill_from(s, 0, (uint64_t)a[3]);
}

static void op_free(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (s) free_slot(s);
}

/* grow SLOT BYTES SALT: realloc or mremap, larger or smaller. */
static void op_grow(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    size_t n = ((size_t)a[1] + PAGE - 1) & ~(PAGE - 1), before = s->n;
    if (s->kind == MALLOC || s->kind == CALLOC || s->kind == ALIGNED) {
        s->p = realloc(s->p, n);
        s->kind = MALLOC;
        must(s->p != NULL, "realloc");
    } else if (s->kind == ANONYMOUS || s->kind == POPULATED) {
        s->p = mremap(s->p, s->n, n, MREMAP_MAYMOVE);
        must(s->p != MAP_FAILED, "mremap");
    } else {
        return;
    }
    s->n = n;
    if (n > before) fill_from(s, before, (uint64_t)a[2]);
    note(c, n);
}

/* move SLOT: to another address, of the program's choice. */
static void op_move(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || (s->kind != ANONYMOUS && s->kind != POPULATED)) return;
    void *to = mapped(s->n, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    s->p = mremap(s->p, s->n, s->n, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    must(s->p == to, "mremap to a place");
}

static uint64_t sum(const struct slot *s) {
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n / 8; i++) sum = sum * 31 + ((const uint64_t *)s->p)[i];
    return sum;
}

static void mix(struct slot *s, uint64_t salt) {
    for (size_t i = 0; i < s->n / 8; i++) {
        uint64_t *w = (uint64_t *)s->p + i;
        *w = *w * 0xd1342543de82ef95u + salt;
    }
}

static void op_fill(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (s) fill_from(s, 0, (uint64_t)a[1]);
}

static void op_mix(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (s) mix(s, (uint64_t)a[1]);
}

static void op_sum(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (s) note(c, sum(s));
}

/* touch SLOT SALT: a word a page. */
static void op_touch(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i += PAGE) {
        uint64_t *w = (uint64_t *)(s->p + i) + (size_t)a[1] % 512;
        sum += *w;
        *w += i;
    }
    note(c, sum);
}

static void op_copy(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]), *d = slot(a[1]);
    if (s && d) memmove(d->p, s->p, least(s->n, d->n));
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void op_sort(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    qsort(s->p, least(s->n / 8, 8192), 8, by_value);
    note(c, *(uint64_t *)s->p);
}

/* text SLOT SALT: numbers as text, printed into the slot and read from it. */
static void op_text(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    char *p = (char *)s->p;
    size_t used = 0, n = least(s->n, 32 << 10);
    for (long i = 0; used + 40 < n; i++) {
        int more = snprintf(p + used, n - used, "%ld,%.3f;", a[1] * i, (double)i / 7);
        must(more > 0, "snprintf");
        used += (size_t)more;
    }
    long whole_part = 0, all = 0;
    double part = 0;
    for (char *q = p; q < p + used; q = strchr(q, ';') + 1) {
        must(sscanf(q, "%ld,%lf;", &whole_part, &part) == 2, "sscanf");
        all += whole_part + (long)(part * 1000);
        if (q - p > 4096) break;
    }
    note(c, (uint64_t)all);
    note(c, strlen(p));
}

/* dontneed SLOT FROM PAGES: whole pages of private memory become zero. Which pages malloc'ed memory
 * has depends on its address. */
static void op_dontneed(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || s->kind < ALIGNED || s->kind > POPULATED) return;
    size_t pages = s->n / PAGE, from = (size_t)a[1] % pages;
    size_t n = least((size_t)a[2] + 1, pages - from);
    must(madvise(s->p + from * PAGE, n * PAGE, MADV_DONTNEED) == 0, "madvise");
}

/* protect SLOT: read-only while it is read. */
static void op_protect(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || s->kind < ALIGNED) return;
    must(mprotect(s->p, s->n, PROT_READ) == 0, "mprotect");
    note(c, sum(s));
    must(mprotect(s->p, s->n, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

/* trap SLOT PAGE: the program's own handler of SIGSEGV opens a closed page. */
static void op_trap(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || s->kind < ALIGNED) return;
    unsigned char *page = s->p + (size_t)a[1] % (s->n / PAGE) * PAGE;
    must(mprotect(page, PAGE, PROT_NONE) == 0, "mprotect");
    ((volatile unsigned char *)page)[a[1] % 4096]++;
    note(c, page[a[1] % 4096]);
}

static void open_page(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    uintptr_t page = (uintptr_t)info->si_addr & ~(PAGE - 1);
    if (page < 1 << 20 || mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE)) {
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(SIGSEGV, &plain, NULL);
    }
}
