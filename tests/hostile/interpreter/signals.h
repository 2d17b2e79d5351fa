/* Operations of the interpreter with signals, also in threads that the C library makes.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
static _Thread_local struct slot *signalled;
static _Thread_local uint64_t signals_seen;
static _Thread_local sigjmp_buf out_of_handler;
static _Thread_local int leaves;

static void on_signal(int signal) {
    int saved = errno;
    signals_seen += (uint64_t)signal;
    struct slot *s = signalled;
    for (size_t i = 0; s && i < s->n; i += PAGE) s->p[i + 7] += (unsigned char)signal;
    errno = saved;
    if (leaves) siglongjmp(out_of_handler, 1);
}

/* signal SLOT TIMES: its handler writes to the slot. */
static void op_signal(struct context *c, const long *a, int at) {
    (void)at;
    signalled = slot(a[0]);
    signals_seen = 0;
    for (long i = 0; i < a[1] % 8 + 1; i++) pthread_kill(pthread_self(), SIGUSR1);
    signalled = NULL;
    note(c, signals_seen);
}

/* jump SLOT: a handler that leaves by siglongjmp. */
static void op_jump(struct context *c, const long *a, int at) {
    (void)at;
    signalled = slot(a[0]);
    signals_seen = 0;
    leaves = 1;
    if (sigsetjmp(out_of_handler, 1) == 0) {
        raise(SIGUSR1);
        note(c, 1);
    }
    leaves = 0;
    signalled = NULL;
    note(c, signals_seen);
}

/* wait SLOT: a blocked signal is waited for; set and result lie in the slot. */
static void op_wait(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    sigset_t *set = (sigset_t *)s->p, *old = (sigset_t *)(s->p + PAGE), *pending = (sigset_t *)(s->p + 512);
    siginfo_t *info = (siginfo_t *)(s->p + 1024);
    struct timespec *limit = (struct timespec *)(s->p + 2048);
    sigemptyset(set);
    sigaddset(set, SIGUSR2);
    *limit = (struct timespec){.tv_sec = 20};
    note(c, (uint64_t)pthread_sigmask(SIG_BLOCK, set, old));
    pthread_kill(pthread_self(), SIGUSR2);
    note(c, (uint64_t)sigpending(pending));
    note(c, (uint64_t)sigismember(pending, SIGUSR2));
    note(c, (uint64_t)sigtimedwait(set, info, limit));
    note(c, (uint64_t)info->si_signo);
    note(c, (uint64_t)pthread_sigmask(SIG_SETMASK, old, NULL));
    memset(s->p, 0, 2 * PAGE);
}

static void on_notice(union sigval v) {
    struct slot *s = v.sival_ptr;
    for (size_t i = PAGE; i < s->n; i += PAGE) s->p[i]++;
    __atomic_add_fetch((long *)s->p, 1, __ATOMIC_SEQ_CST);
}

/* notify SLOT: a timer's callback in a thread that the C library makes. */
static void op_notify(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s) return;
    *(long *)s->p = 0;
    struct sigevent how = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_notice};
    how.sigev_value.sival_ptr = s;
    timer_t timer;
    must(timer_create(CLOCK_MONOTONIC, &how, &timer) == 0, "timer_create");
    struct itimerspec once = {.it_value = {.tv_nsec = 1000000}};
    must(timer_settime(timer, 0, &once, NULL) == 0, "timer_settime");
    while (__atomic_load_n((long *)s->p, __ATOMIC_SEQ_CST) == 0) usleep(200);
    timer_delete(timer);
    note(c, *(uint64_t *)s->p);
}
