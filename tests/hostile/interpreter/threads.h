/* Operations of the interpreter that make threads, and let them meet in a slot.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
struct part {
    struct context c;
    pthread_t id;
    int at;
    int how;
};

static void noted(void *p) { note(&((struct part *)p)->c, 77); }

static void *run_part(void *arg) {
    struct part *p = arg;
    run_inside(&p->c, p->at);
    switch (p->how) {
    case 1: pthread_exit(NULL);
    case 2:
        pthread_cleanup_push(noted, p);
        pthread_cancel(pthread_self());
        pthread_testcancel();
        pthread_cleanup_pop(0);
        break;
    default: break;
    }
    return NULL;
}

static int run_part_of_c11(void *arg) {
    run_inside(&((struct part *)arg)->c, ((struct part *)arg)->at);
    return 7;
}

/* Whether a parallel region may begin here. libomp 14 damages its own memory when threads that
 * began regions end, so with it only the first thread begins regions. */
static int may_fork_team(void) {
#ifdef __clang__
    return gettid() == getpid();
#else
    return 1;
#endif
}

static void op_part(struct context *c, const long *a, int at) {
    (void)a;
    run_inside(c, at);
}

/* team WAY: a thread for each block "part HOW" in it. */
static void op_team(struct context *c, const long *a, int at) {
    struct part parts[PARTS] = {0};
    int n = 0;
    for (int i = at + 1; i < ops[at].end - 1 && n < PARTS; i = ops[i].end) {
        if (ops[i].run != op_part) continue;
        parts[n].at = i;
        parts[n++].how = (int)ops[i].a[0];
    }
    if (a[0] == 1 && may_fork_team()) {
#pragma omp parallel for num_threads(n ? n : 1) schedule(static, 1)
        for (int i = 0; i < n; i++) run_inside(&parts[i].c, parts[i].at);
    } else if (a[0] == 2) {
        thrd_t ids[PARTS];
        for (int i = 0; i < n; i++) must(thrd_create(&ids[i], run_part_of_c11, &parts[i]) == thrd_success, "thrd_create");
        for (int i = 0, r = 0; i < n; i++, note(c, (uint64_t)r)) must(thrd_join(ids[i], &r) == thrd_success, "thrd_join");
    } else {
        for (int i = 0; i < n; i++) must(!pthread_create(&parts[i].id, NULL, run_part, &parts[i]), "pthread_create");
        for (int i = 0; i < n; i++) {
            void *result;
            must(pthread_join(parts[i].id, &result) == 0, "pthread_join");
            note(c, result == PTHREAD_CANCELED);
        }
    }
    for (int i = 0; i < n; i++) note(c, parts[i].c.digest);
}

/* Threads that meet in a slot: locks, conditions, barriers and semaphores lie in it. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t turn;
    pthread_barrier_t all;
    sem_t free;
    long count, whose, under_semaphore, atomic;
};

struct guest {
    struct slot *s;
    long me, of, rounds;
};

static void *meet(void *arg) {
    struct guest *g = arg;
    struct meeting *m = (struct meeting *)g->s->p;
    long *shared = (long *)(g->s->p + PAGE);
    for (long i = 0; i < g->rounds; i++) {
        pthread_mutex_lock(&m->lock);
        m->count++;
        shared[i % 512] += i;
        pthread_mutex_unlock(&m->lock);
        __atomic_add_fetch(&m->atomic, g->me, __ATOMIC_RELAXED);
        sem_wait(&m->free);
        m->under_semaphore += g->me + i;
        sem_post(&m->free);
    }
    pthread_barrier_wait(&m->all);
    for (long i = 0; i < 3; i++) {
        pthread_mutex_lock(&m->lock);
        while (m->whose % g->of != g->me) pthread_cond_wait(&m->turn, &m->lock);
        m->whose++;
        pthread_cond_broadcast(&m->turn);
        pthread_mutex_unlock(&m->lock);
    }
    return NULL;
}

/* meet SLOT THREADS ROUNDS */
static void op_meet(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    long n = 2 + a[1] % 3;
    memset(s->p, 0, 2 * PAGE);
    struct meeting *m = (struct meeting *)s->p;
    must(!pthread_mutex_init(&m->lock, NULL) && !pthread_cond_init(&m->turn, NULL), "lock");
    must(!pthread_barrier_init(&m->all, NULL, (unsigned)n) && !sem_init(&m->free, 0, 1), "barrier");
    struct guest guests[4];
    pthread_t ids[4];
    for (long i = 0; i < n; i++) {
        guests[i] = (struct guest){s, i, n, a[2] % 300};
        must(!pthread_create(&ids[i], NULL, meet, &guests[i]), "pthread_create");
    }
    for (long i = 0; i < n; i++) must(!pthread_join(ids[i], NULL), "pthread_join");
    note(c, (uint64_t)(m->count + 3 * m->whose + 5 * m->under_semaphore + 7 * m->atomic));
    must(!pthread_barrier_destroy(&m->all) && !sem_destroy(&m->free), "barrier's end");
    memset(s->p, 0, PAGE);
}

struct loose {
    struct slot *s;
    sem_t done;
};

static void *run_loose(void *arg) {
    struct loose *l = arg;
    mix(l->s, 3);
    sem_post(&l->done);
    return NULL;
}

/* detach SLOT: a thread that nobody joins. */
static void op_detach(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct loose l = {.s = slot(a[0])};
    if (!l.s) return;
    pthread_attr_t attributes;
    pthread_t id;
    sem_init(&l.done, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    must(!pthread_create(&id, &attributes, run_loose, &l), "pthread_create");
    while (sem_wait(&l.done)) {}
    /* It may still be in sem_post. */
    usleep(1000);
}

static ucontext_t here, there;
static struct slot *coroutine_of;

static void coroutine(void) {
    unsigned char room[4096];
    memset(room, 5, sizeof room);
    mix(coroutine_of, room[100]);
    swapcontext(&there, &here);
    mix(coroutine_of, room[200]);
}

/* context SLOT: a coroutine whose stack is allocated; top level only. */
static void op_context(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    coroutine_of = slot(a[0]);
    if (!coroutine_of) return;
    size_t n = 256 << 10;
    void *stack = malloc(n);
    must(stack != NULL && getcontext(&there) == 0, "coroutine");
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = n;
    there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    must(swapcontext(&here, &there) == 0, "swapcontext");
    usleep(1500);
    must(swapcontext(&here, &there) == 0, "swapcontext");
    free(stack);
}

static uint64_t deep(long n, uint64_t x) {
    volatile unsigned char room[8192];
    for (size_t i = 0; i < sizeof room; i += 512) room[i] = (unsigned char)(x + i);
    return n ? deep(n - 1, x * 3 + room[512]) + room[1024] : x;
}

static void op_deep(struct context *c, const long *a, int at) {
    (void)at;
    note(c, deep(a[0] % 100, 1));
}
