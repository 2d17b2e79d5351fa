/* Every entry point of libgomp that starts or ends a team, or waits for one, called as code of
 * GCC's calls it: by its own declaration, with six, seven and eight arguments, from a function that
 * finds its own data again afterwards. Two threads; OMP_CANCELLATION=true.
 *
 * Prints how often teams were started, and how many barriers the first thread left in them.
 */
#include "hostile.h"
#include <execinfo.h>
#include <omp.h>
#include <stdbool.h>

typedef void body(void *);
typedef unsigned u;

/* gcc/omp-builtins.def */
void GOMP_parallel(body, void *, u, u);
void GOMP_parallel_sections(body, void *, u, u, u);
void GOMP_parallel_loop_static(body, void *, u, long, long, long, long, u);
void GOMP_parallel_loop_dynamic(body, void *, u, long, long, long, long, u);
void GOMP_parallel_loop_guided(body, void *, u, long, long, long, long, u);
void GOMP_parallel_loop_nonmonotonic_dynamic(body, void *, u, long, long, long, long, u);
void GOMP_parallel_loop_nonmonotonic_guided(body, void *, u, long, long, long, long, u);
void GOMP_parallel_loop_runtime(body, void *, u, long, long, long, u);
void GOMP_parallel_loop_nonmonotonic_runtime(body, void *, u, long, long, long, u);
void GOMP_parallel_loop_maybe_nonmonotonic_runtime(body, void *, u, long, long, long, u);
void GOMP_teams_reg(body, void *, u, u, u);
void GOMP_parallel_start(body, void *, u);
void GOMP_parallel_sections_start(body, void *, u, u);
void GOMP_parallel_loop_static_start(body, void *, u, long, long, long, long);
void GOMP_parallel_loop_dynamic_start(body, void *, u, long, long, long, long);
void GOMP_parallel_loop_guided_start(body, void *, u, long, long, long, long);
void GOMP_parallel_loop_runtime_start(body, void *, u, long, long, long);
void GOMP_parallel_end(void);
void GOMP_barrier(void);
bool GOMP_barrier_cancel(void);
bool GOMP_cancel(int, bool);
bool GOMP_loop_dynamic_start(long, long, long, long, long *, long *);
bool GOMP_loop_static_next(long *, long *);
bool GOMP_loop_dynamic_next(long *, long *);
bool GOMP_loop_guided_next(long *, long *);
bool GOMP_loop_runtime_next(long *, long *);
bool GOMP_loop_nonmonotonic_dynamic_next(long *, long *);
bool GOMP_loop_nonmonotonic_guided_next(long *, long *);
bool GOMP_loop_nonmonotonic_runtime_next(long *, long *);
bool GOMP_loop_maybe_nonmonotonic_runtime_next(long *, long *);
void GOMP_loop_end(void);
bool GOMP_loop_end_cancel(void);
void GOMP_loop_end_nowait(void);
u GOMP_sections_start(u);
u GOMP_sections_next(void);
void GOMP_sections_end(void);
bool GOMP_sections_end_cancel(void);
void GOMP_sections_end_nowait(void);

enum { ROUNDS = 20, CANCEL_PARALLEL = 1 };

typedef bool next_piece(long *, long *);

static long regions, barriers;

/* What a team has done. */
struct work {
    next_piece *next;
    long sum, threads, barriers;
    void *below; /* where the function returns to that started the team */
    long walked;
};

static void add(long *to, long n) { __atomic_add_fetch(to, n, __ATOMIC_RELAXED); }

static void left(struct work *w) {
    if (omp_get_thread_num() == 0) w->barriers++;
}

/* The stack can be walked, past whoever is between this function and the one that started the
 * team. */
static void walk(struct work *w) {
    if (omp_get_thread_num() || w->walked) return;
    void *frames[32];
    int found = backtrace(frames, 32);
    for (int i = 0; i < found; i++) w->walked |= frames[i] == w->below;
}

static void present(void *data) {
    struct work *w = data;
    add(&w->threads, 1);
    add(&w->sum, omp_get_thread_num() + 10 * omp_get_num_threads());
    walk(w);
}

static void iterations(void *data) {
    struct work *w = data;
    add(&w->threads, 1);
    walk(w);
    for (long from, to; w->next(&from, &to);)
        for (long i = from; i < to; i += 3) add(&w->sum, i);
    GOMP_loop_end_nowait();
}

static void sections(void *data) {
    struct work *w = data;
    add(&w->threads, 1);
    walk(w);
    for (u s; (s = GOMP_sections_next());) add(&w->sum, 1L << 8 * s);
    GOMP_sections_end_nowait();
}

static void team(void *data) {
    struct work *w = data;
    add(&w->sum, 1 + omp_get_team_num());
    walk(w);
}

/* A barrier, a loop and sections, each with everybody at its end. */
static void waits(void *data) {
    struct work *w = data;
    add(&w->threads, 1);
    GOMP_barrier();
    left(w);
    must(__atomic_load_n(&w->threads, __ATOMIC_RELAXED) == 2, "a barrier waits for all");
    long from, to;
    for (bool more = GOMP_loop_dynamic_start(0, 100, 3, 5, &from, &to); more; more = GOMP_loop_dynamic_next(&from, &to))
        for (long i = from; i < to; i += 3) add(&w->sum, i);
    GOMP_loop_end();
    left(w);
    must((__atomic_load_n(&w->sum, __ATOMIC_RELAXED) & 0xffff) == 33 * 34 / 2 * 3, "all iterations are done behind the loop");
    for (u s = GOMP_sections_start(3); s; s = GOMP_sections_next()) add(&w->sum, 1L << 16 * s);
    GOMP_sections_end();
    left(w);
}

/* The same; nobody cancels. */
static void waits_uncancelled(void *data) {
    struct work *w = data;
    add(&w->threads, 1);
    must(!GOMP_barrier_cancel(), "nobody has cancelled at the barrier");
    left(w);
    long from, to;
    for (bool more = GOMP_loop_dynamic_start(0, 100, 3, 5, &from, &to); more; more = GOMP_loop_dynamic_next(&from, &to))
        for (long i = from; i < to; i += 3) add(&w->sum, i);
    must(!GOMP_loop_end_cancel(), "nobody has cancelled at the loop's end");
    left(w);
    for (u s = GOMP_sections_start(3); s; s = GOMP_sections_next()) add(&w->sum, 1L << 16 * s);
    must(!GOMP_sections_end_cancel(), "nobody has cancelled at the sections' end");
    left(w);
}

/* The last thread cancels, the first waits for it and is told. */
static bool gives_up(struct work *w) {
    add(&w->threads, 1);
    if (omp_get_thread_num() == 0) return false;
    must(GOMP_cancel(CANCEL_PARALLEL, true), "OMP_CANCELLATION is true");
    return true;
}

static void barrier_cancelled(void *data) {
    struct work *w = data;
    if (!gives_up(w)) add(&w->sum, GOMP_barrier_cancel());
}

static void loop_cancelled(void *data) {
    struct work *w = data;
    long from, to;
    if (GOMP_loop_dynamic_start(0, 2, 1, 1, &from, &to))
        while (GOMP_loop_dynamic_next(&from, &to)) {}
    if (!gives_up(w)) add(&w->sum, GOMP_loop_end_cancel());
}

static void sections_cancelled(void *data) {
    struct work *w = data;
    if (GOMP_sections_start(2))
        while (GOMP_sections_next()) {}
    if (!gives_up(w)) add(&w->sum, GOMP_sections_end_cancel());
}

/* Teams of both threads of a team: homenode tells the outer one. */
static void nested(void *data) {
    struct work *w = data, inner = {0};
    add(&w->threads, 1);
    walk(w);
    must(omp_get_level() == 1, "the outer level");
    GOMP_parallel(present, &inner, 2, 0);
    GOMP_parallel_start(present, &inner, 1);
    present(&inner);
    GOMP_parallel_end();
    must(inner.threads == 3 && inner.sum == 0 + 1 + 2 * 20 + 10, "nested teams");
    add(&w->sum, inner.threads);
}


/* One team each. A number of the caller's own must be there still. */
#define STARTS(name, body, wanted, members, ...)                                                      \
    static __attribute__((noinline)) void call_##name(next_piece *next) {                             \
        volatile long own[3] = {11, 22, 33};                                                          \
        struct work w = {.next = next, .below = __builtin_return_address(0)};                         \
        name(body, &w, 2, ##__VA_ARGS__);                                                             \
        must(own[0] + own[1] + own[2] == 66, #name ": the caller's data");                            \
        must(w.sum == (wanted), #name ": the sum");                                                   \
        must(w.threads == (members), #name ": the threads");                                          \
        must(w.walked, #name ": the stack can be walked");                                            \
        regions++;                                                                                    \
    }
#define STARTS_OLD(name, body, wanted, ...)                                                           \
    static __attribute__((noinline)) void call_##name(next_piece *next) {                             \
        volatile long own[3] = {11, 22, 33};                                                          \
        struct work w = {.next = next, .below = __builtin_return_address(0)};                         \
        name(body, &w, 2, ##__VA_ARGS__);                                                             \
        body(&w);                                                                                     \
        GOMP_parallel_end();                                                                          \
        must(own[0] + own[1] + own[2] == 66, #name ": the caller's data");                            \
        must(w.sum == (wanted) && w.threads == 2 && w.walked, #name);                                 \
        regions++;                                                                                    \
    }

/* 7, 10, … below 1000: 331 numbers. */
#define LOOP (331L * 7 + 3 * 330L * 331 / 2)
#define RANGE 7, 1000, 3

STARTS(GOMP_parallel, present, 0 + 1 + 2 * 20, 2, 0)
STARTS(GOMP_parallel_sections, sections, 0x01010100, 2, 3, 0)
STARTS(GOMP_parallel_loop_static, iterations, LOOP, 2, RANGE, 11, 0)
STARTS(GOMP_parallel_loop_dynamic, iterations, LOOP, 2, RANGE, 11, 0)
STARTS(GOMP_parallel_loop_guided, iterations, LOOP, 2, RANGE, 11, 0)
STARTS(GOMP_parallel_loop_nonmonotonic_dynamic, iterations, LOOP, 2, RANGE, 11, 0)
STARTS(GOMP_parallel_loop_nonmonotonic_guided, iterations, LOOP, 2, RANGE, 11, 0)
STARTS(GOMP_parallel_loop_runtime, iterations, LOOP, 2, RANGE, 0)
STARTS(GOMP_parallel_loop_nonmonotonic_runtime, iterations, LOOP, 2, RANGE, 0)
STARTS(GOMP_parallel_loop_maybe_nonmonotonic_runtime, iterations, LOOP, 2, RANGE, 0)
STARTS(GOMP_teams_reg, team, 1 + 2, 0, 0, 0)
STARTS_OLD(GOMP_parallel_start, present, 0 + 1 + 2 * 20)
STARTS_OLD(GOMP_parallel_sections_start, sections, 0x01010100, 3)
STARTS_OLD(GOMP_parallel_loop_static_start, iterations, LOOP, RANGE, 11)
STARTS_OLD(GOMP_parallel_loop_dynamic_start, iterations, LOOP, RANGE, 11)
STARTS_OLD(GOMP_parallel_loop_guided_start, iterations, LOOP, RANGE, 11)
STARTS_OLD(GOMP_parallel_loop_runtime_start, iterations, LOOP, RANGE)

/* How the team's threads wait for each other. */
static void in_team(body *what, long wanted) {
    struct work w = {0};
    GOMP_parallel(what, &w, 2, 0);
    must(w.sum == wanted && w.threads == 2, "a team that waits");
    regions++;
    barriers += w.barriers;
}

/* Those whose data is too intricate for a declaration here: GOMP_parallel_reductions,
 * GOMP_workshare_task_reduction_unregister. */
static void task_reductions(long n) {
    long s = 0;
#pragma omp parallel num_threads(2) reduction(task, + : s)
    {
#pragma omp task in_reduction(+ : s)
        s += n;
        s += 1;
    }
    must(s == 2 * (n + 1), "GOMP_parallel_reductions");
    regions++;
    s = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp for reduction(task, + : s) schedule(dynamic)
        for (long i = 0; i < n; i++) {
#pragma omp task in_reduction(+ : s)
            s += i;
        }
    }
    must(s == n * (n - 1) / 2, "a loop with reductions over tasks");
    regions++;
    barriers += 2; /* GOMP_loop_end comes before */
}

int main(void) {
    must(omp_get_cancellation(), "OMP_CANCELLATION is true");
    omp_set_max_active_levels(2);
    size_t bytes = 1 * MiB;
    uint64_t *p = malloc(bytes);
    fill(p, bytes, 8);
    for (long round = 0; round < ROUNDS; round++) {
        call_GOMP_parallel(NULL);
        call_GOMP_parallel_sections(NULL);
        call_GOMP_parallel_loop_static(GOMP_loop_static_next);
        call_GOMP_parallel_loop_dynamic(GOMP_loop_dynamic_next);
        call_GOMP_parallel_loop_guided(GOMP_loop_guided_next);
        call_GOMP_parallel_loop_nonmonotonic_dynamic(GOMP_loop_nonmonotonic_dynamic_next);
        call_GOMP_parallel_loop_nonmonotonic_guided(GOMP_loop_nonmonotonic_guided_next);
        call_GOMP_parallel_loop_runtime(GOMP_loop_runtime_next);
        call_GOMP_parallel_loop_nonmonotonic_runtime(GOMP_loop_nonmonotonic_runtime_next);
        call_GOMP_parallel_loop_maybe_nonmonotonic_runtime(GOMP_loop_maybe_nonmonotonic_runtime_next);
        call_GOMP_teams_reg(NULL);
        call_GOMP_parallel_start(NULL);
        call_GOMP_parallel_sections_start(NULL);
        call_GOMP_parallel_loop_static_start(GOMP_loop_static_next);
        call_GOMP_parallel_loop_dynamic_start(GOMP_loop_dynamic_next);
        call_GOMP_parallel_loop_guided_start(GOMP_loop_guided_next);
        call_GOMP_parallel_loop_runtime_start(GOMP_loop_runtime_next);
        in_team(waits, 33 * 34 / 2 * 3 + (1L << 16) + (1L << 32) + (1L << 48));
        in_team(waits_uncancelled, 33 * 34 / 2 * 3 + (1L << 16) + (1L << 32) + (1L << 48));
        in_team(barrier_cancelled, 1);
        in_team(loop_cancelled, 1);
        in_team(sections_cancelled, 1);
        in_team(nested, 6);
        task_reductions(100 + round);
        check(p, bytes, 8, "memory");
    }
    printf("%ld regions %ld barriers\n", regions, barriers);
    return done();
}
