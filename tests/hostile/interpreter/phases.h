/* Operations of the interpreter with OpenMP.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
/* each SLOT THREADS SCHEDULE SALT */
static void op_each(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || !may_fork_team()) return;
    uint64_t *w = (uint64_t *)s->p, salt = (uint64_t)a[3];
    long n = (long)(s->n / 8);
    int threads = (int)(1 + a[1] % 4);
    switch (a[2] % 4) {
    case 0:
#pragma omp parallel for num_threads(threads) schedule(static)
        for (long i = 0; i < n; i++) w[i] = w[i] * 5 + salt;
        break;
    case 1:
#pragma omp parallel for num_threads(threads) schedule(dynamic, 512)
        for (long i = 0; i < n; i++) w[i] = w[i] * 7 + salt;
        break;
    case 2:
#pragma omp parallel for num_threads(threads) schedule(guided, 64)
        for (long i = 0; i < n; i++) w[i] = w[i] * 9 + salt;
        break;
    default:
#pragma omp parallel for num_threads(threads) schedule(static, 512)
        for (long i = 0; i < n; i++) w[i] += salt ^ (uint64_t)i;
    }
}

static void op_reduce(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || !may_fork_team()) return;
    const uint64_t *w = (const uint64_t *)s->p;
    uint64_t sum = 0;
    long n = (long)(s->n / 8);
#pragma omp parallel for num_threads((int)(1 + a[1] % 4)) reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += w[i] * (uint64_t)(i | 1);
    note(c, sum);
}

static void op_tasks(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || !may_fork_team()) return;
#pragma omp parallel num_threads((int)(1 + a[1] % 4))
#pragma omp single
    for (size_t from = 0; from < s->n; from += 32 << 10) {
#pragma omp task firstprivate(from)
        {
            struct slot piece = {s->p + from, least(s->n - from, 32 << 10), MALLOC};
            mix(&piece, from | 1);
        }
    }
}

/* stages SLOT THREADS ROUNDS: barriers inside one long region. */
static void op_stages(struct context *c, const long *a, int at) {
    (void)c;
    (void)at;
    struct slot *s = slot(a[0]);
    if (!s || !may_fork_team()) return;
    uint64_t *w = (uint64_t *)s->p;
    long n = (long)(s->n / 8), rounds = a[2] % 30;
#pragma omp parallel num_threads((int)(1 + a[1] % 4))
    for (long r = 0; r < rounds; r++) {
#pragma omp for schedule(static)
        for (long i = 0; i < n; i += 64) w[i] += (uint64_t)(r * i);
#pragma omp single
        w[r % n] ^= 1;
    }
}

static void op_loop(struct context *c, const long *a, int at) {
    for (long i = 0; i < a[0] % 50; i++) run_inside(c, at);
}
