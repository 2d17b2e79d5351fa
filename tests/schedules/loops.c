/* Loops with schedules that a run-time hands out, in every form that matters. The program counts
 * each iteration and looks at the last value. It prints the same, whoever hands the iterations out.
 *
 *   loops all          every form; prints a line for each
 *   loops map N        one dynamic loop N times; prints how often the threads' iterations were
 *                      those of the first time
 *   loops owners       who executed which iteration, in the first two executions of a loop
 *   loops named        as owners, of three loops at different places with one name for homenode
 *   loops follow       a dynamic loop whose quarters go to the threads in descending order, then
 *                      two static loops; prints who got each quarter, and the last value
 *   loops pages        a loop of which each iteration uses memory of its own, before and after
 *                      the memory changes nodes; prints the node of each iteration's thread,
 *                      where threads 0 and 1 are on node 0, and threads 2 and 3 on node 1
 *   loops time N C     N executions of a loop of C iterations without work; prints nanoseconds a
 *                      chunk
 */
#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 4096

static int count[MOST];

static void clear(void) { memset(count, 0, sizeof count); }

static void hit(long at) {
    if (at < 0 || at >= MOST) {
        printf("iteration %ld is none\n", at);
        exit(1);
    }
#pragma omp atomic
    count[at]++;
}

/* Each of the first n once, and nothing else. */
static void check(const char *what, long n, long last) {
    for (long i = 0; i < MOST; i++) {
        if (count[i] != (i < n)) {
            printf("%s: iteration %ld was executed %d times\n", what, i, count[i]);
            exit(1);
        }
    }
    printf("%s: %ld, last %ld\n", what, n, last);
    clear();
}

/* Something that takes longer for some iterations. */
static void work(long i) {
    for (long k = 0; k < (i * 7919) % 300; k++) __asm__ volatile("" : : "r"(k));
}

#define LOOP(what, schedule_, type, first, test, step, at, n)                                                                    \
    do {                                                                                                                         \
        type last_ = 0;                                                                                                          \
        _Pragma("omp parallel") {                                                                                                \
            PRAGMA(omp for lastprivate(last_) schedule_) for (type i = first; test; step) {                                      \
                work((long)(at));                                                                                                \
                hit((long)(at));                                                                                                 \
                last_ = i;                                                                                                       \
            }                                                                                                                    \
        }                                                                                                                        \
        check(what, n, (n) > 0 ? (long)last_ : 0);                                                                                             \
    } while (0)
#define PRAGMA(...) _Pragma(#__VA_ARGS__)

static void forms(void) {
    LOOP("dynamic", schedule(dynamic), int, 0, i < 1000, i++, i, 1000);
    LOOP("dynamic,7", schedule(dynamic, 7), long, 0, i < 1000, i++, i, 1000);
    LOOP("monotonic dynamic,3", schedule(monotonic : dynamic, 3), long, 0, i < 1000, i++, i, 1000);
    LOOP("nonmonotonic dynamic,3", schedule(nonmonotonic : dynamic, 3), long, 0, i < 1000, i++, i, 1000);
    LOOP("guided", schedule(guided), int, 0, i < 1001, i++, i, 1001);
    LOOP("guided,5", schedule(guided, 5), unsigned, 0, i < 1001, i++, i, 1001);
    LOOP("monotonic guided", schedule(monotonic : guided), long, 0, i < 1001, i++, i, 1001);
    LOOP("auto", schedule(auto), int, 0, i < 777, i++, i, 777);
    LOOP("stride", schedule(dynamic, 4), int, 3, i < 3000, i += 7, (i - 3) / 7, 429);
    LOOP("downwards", schedule(dynamic, 4), int, 999, i >= 0, i--, 999 - i, 1000);
    LOOP("downwards by 3", schedule(guided), long, 2000, i > -1000, i -= 3, (2000 - i) / 3, 1000);
    LOOP("negative values", schedule(dynamic, 2), int, -500, i < 500, i++, i + 500, 1000);
    LOOP("int's limits", schedule(dynamic, 2), int, INT_MAX - 100, i < INT_MAX, i++, i - (INT_MAX - 100), 100);
    LOOP("unsigned", schedule(dynamic, 2), unsigned, 4000000000u, i < 4000000900u, i += 3, (i - 4000000000u) / 3, 300);
    LOOP("unsigned long", schedule(dynamic, 2), unsigned long long, ULLONG_MAX - 1000, i < ULLONG_MAX, i++,
         i - (ULLONG_MAX - 1000), 1000);
    LOOP("unsigned long down", schedule(guided), unsigned long long, 1ull << 63, i > (1ull << 63) - 500, i--,
         (1ull << 63) - i, 500);
    LOOP("huge steps", schedule(dynamic), unsigned long long, 0, i < (1ull << 62) * 3, i += 1ull << 60, i >> 60, 12);
    LOOP("one", schedule(dynamic, 100), int, 0, i < 1, i++, i, 1);
    LOOP("fewer than threads", schedule(dynamic), int, 0, i < 3, i++, i, 3);
    LOOP("chunk above the trip count", schedule(dynamic, 5000), int, 0, i < 10, i++, i, 10);
    LOOP("none", schedule(dynamic), int, 5, i < 5, i++, i, 0);
    LOOP("none, downwards", schedule(guided), unsigned long long, 5, i > 5, i--, i, 0);
}

/* One range a thread. clang calls the run-time for the bounds; GCC computes them by itself. */
static void static_forms(void) {
    LOOP("static int", schedule(static), int, 0, i < 1000, i++, i, 1000);
    LOOP("static long", schedule(static), long, 0, i < 777, i++, i, 777);
    LOOP("static unsigned", schedule(static), unsigned, 4000000000u, i < 4000000900u, i += 3, (i - 4000000000u) / 3, 300);
    LOOP("static unsigned long", schedule(static), unsigned long long, ULLONG_MAX - 1000, i < ULLONG_MAX, i++,
         i - (ULLONG_MAX - 1000), 1000);
    LOOP("static downwards", schedule(static), int, 999, i >= 0, i--, 999 - i, 1000);
    LOOP("static downwards by 3", schedule(static), long, 2000, i > -1000, i -= 3, (2000 - i) / 3, 1000);
    LOOP("static huge steps", schedule(static), unsigned long long, 0, i < (1ull << 62) * 3, i += 1ull << 60, i >> 60, 12);
    LOOP("static fewer than threads", schedule(static), int, 0, i < 3, i++, i, 3);
    LOOP("static one", schedule(static), unsigned long long, 0, i < 1, i++, i, 1);
    LOOP("static none", schedule(static), int, 5, i < 5, i++, i, 0);
    LOOP("no schedule", , int, -500, i < 500, i++, i + 500, 1000);
}

/* Loops that rely on what OpenMP promises of static loops with one trip count in one region. */
static void same_threads(void) {
    static int owner[1000], other[1000];
    int wrong = 0;
    for (int n = 990; n < 1000; n++) {
#pragma omp parallel reduction(+ : wrong)
        {
            int me = omp_get_thread_num();
#pragma omp for schedule(static) nowait
            for (int i = 0; i < n; i++) work(i), owner[i] = me;
#pragma omp for schedule(dynamic, 9) nowait
            for (int i = 0; i < n; i++) work(i), other[i] = me;
#pragma omp for schedule(static) nowait
            for (long i = n; i > 0; i--) wrong += owner[n - i] != me, hit(i - 1);
        }
        check("same threads", n, wrong);
    }
}

#ifdef __clang__
static void four(void *outer) {
    for (long i = 0; i < 4; i++) hit((long)outer * 4 + i);
}
#define OLD_TEAM(outer) four(outer)
#else
/* GCC before 4.9 starts and ends a team by two calls. homenode leaves the loops of such a team
 * alone. The loop around the team goes on. */
extern void GOMP_parallel_start(void (*)(void *), void *, unsigned);
extern void GOMP_parallel_end(void);
extern _Bool GOMP_loop_dynamic_start(long, long, long, long, long *, long *);
extern _Bool GOMP_loop_dynamic_next(long *, long *);
extern void GOMP_loop_end_nowait(void);
static void four(void *outer) {
    long from, to;
    if (GOMP_loop_dynamic_start(0, 4, 1, 1, &from, &to)) {
        do {
            for (long i = from; i < to; i++) hit((long)outer * 4 + i);
        } while (GOMP_loop_dynamic_next(&from, &to));
    }
    GOMP_loop_end_nowait();
}
#define OLD_TEAM(outer) (GOMP_parallel_start(four, outer, 1), four(outer), GOMP_parallel_end())
#endif

/* Teams inside of the chunks of a loop. */
static void teams_inside(void) {
    for (int t = 0; t < 3; t++) {
#pragma omp parallel for schedule(dynamic, 3)
        for (long i = 0; i < 50; i++) OLD_TEAM((void *)i);
        check("old teams", 200, 0);
#pragma omp parallel for schedule(dynamic, 3)
        for (long i = 0; i < 50; i++) {
#pragma omp parallel for schedule(dynamic) num_threads(2)
            for (int k = 0; k < 4; k++) hit(i * 4 + k);
        }
        check("teams", 200, 0);
    }
}

static void of_the_programs_choice(void) {
    const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided, omp_sched_auto};
    for (int k = 0; k < 4; k++) {
        for (int chunk = 0; chunk < 10; chunk += 3) {
            omp_set_schedule(kinds[k], chunk);
            LOOP("runtime", schedule(runtime), int, 0, i < 500, i++, i, 500);
            LOOP("runtime, unsigned long", schedule(runtime), unsigned long long, 10, i < 510, i++, i - 10, 500);
        }
    }
    omp_set_schedule(omp_sched_dynamic, 1);
}

/* Several loops under way: nobody waits between them. */
static void no_waiting(int rounds) {
    long last = 0;
#pragma omp parallel
    {
        for (int r = 0; r < rounds; r++) {
#pragma omp for schedule(dynamic, 3) nowait
            for (int i = 0; i < 200; i++) work(i * omp_get_thread_num()), hit(i);
#pragma omp for schedule(guided) nowait
            for (long i = 399; i >= 200; i--) hit(i);
#pragma omp for schedule(runtime) nowait
            for (unsigned long long i = 400; i < 600; i++) hit((long)i);
        }
#pragma omp for schedule(dynamic) lastprivate(last)
        for (int i = 600; i < 700; i++) hit(i), last = i;
    }
    for (int i = 0; i < 600; i++) {
        if (count[i] != rounds) printf("nowait: %d %d\n", i, count[i]), exit(1);
        count[i] = 1;
    }
    check("nowait", 700, last);
}

static void nested(void) {
    long sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 20; i++) {
            long inner = 0;
#pragma omp parallel num_threads(3) reduction(+ : inner)
            {
#pragma omp for schedule(dynamic, 2)
                for (int k = 0; k < 50; k++) inner += k;
#pragma omp for schedule(guided) nowait
                for (int k = 0; k < 50; k++) inner += k;
            }
            sum += inner * (i + 1);
            hit(i);
        }
#pragma omp for schedule(guided)
        for (int i = 20; i < 60; i++) hit(i);
    }
    check("nested", 60, sum);
}

static void cancelled(void) {
    int seen = 0;
    for (int round = 0; round < 20; round++) {
        long after = 0;
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 2)
            for (int i = 0; i < 1000; i++) {
                if (i == 37) {
#pragma omp atomic
                    seen++;
#pragma omp cancel for
                }
#pragma omp cancellation point for
            }
            /* The next loop is whole again. */
#pragma omp for schedule(dynamic, 5) reduction(+ : after)
            for (int i = 0; i < 300; i++) after += i, hit(i);
        }
        check("after a cancelled loop", 300, after);
    }
    for (int round = 0; round < 20; round++) {
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 2) nowait
            for (int i = 0; i < 300; i++) work(i);
            if (omp_get_thread_num() == 0) {
#pragma omp cancel parallel
            }
            /* Some threads get here, and the first one never does. */
#pragma omp for schedule(dynamic, 2) nowait
            for (int i = 0; i < 300; i++) work(i);
#pragma omp cancellation point parallel
        }
        LOOP("after a cancelled team", schedule(dynamic, 3), int, 0, i < 300, i++, i, 300);
    }
    printf("cancelled at 37: %d\n", seen);
}

static void teams_that_change(void) {
    for (int n = 1; n < 7; n++) {
        for (int again = 0; again < 3; again++) {
#pragma omp parallel num_threads(n)
            {
#pragma omp for schedule(dynamic, 3)
                for (int i = 0; i < 100 + n; i++) work(i), hit(i);
            }
            check("another team", 100 + n, n);
        }
    }
}

/* Trip counts that change: a triangle. */
static void triangle(void) {
    long sum = 0;
    for (int k = 0; k < 120; k++) {
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : sum)
        for (int i = k; i < 120; i++) sum += i * k, hit(i - k);
        check("triangle", 120 - k, sum);
    }
}

/* Loops in tasks' company, ordered ones, and one that nobody hands out. */
static void others(void) {
    int next = 0;
#pragma omp parallel for ordered schedule(dynamic, 2)
    for (int i = 0; i < 100; i++) {
        hit(i);
#pragma omp ordered
        {
            if (next != i) printf("ordered: %d after %d\n", i, next), exit(1);
            next++;
        }
    }
    check("ordered", 100, next);
#pragma omp parallel
    {
#pragma omp single
        for (int t = 0; t < 8; t++) {
#pragma omp task firstprivate(t)
            work(t);
        }
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 50; i++) hit(i);
#pragma omp sections
        {
#pragma omp section
            hit(50);
#pragma omp section
            hit(51);
        }
    }
    check("tasks", 52, 0);
    for (int i = 0; i < 2; i++) {
        /* Outside of a team. */
        LOOP("static", schedule(static, 3), int, 0, i < 100, i++, i, 100);
    }
#pragma omp for schedule(dynamic, 3)
    for (int i = 0; i < 100; i++) hit(i);
    check("no team", 100, 0);
}

static void owners_of(int *owner, int n) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < n; i++) work(i * 3), owner[i] = omp_get_thread_num();
    }
}

/* Waits until a number that other threads change is `want`. */
static void wait_for(int *number, int want) {
    for (int now = want - 1; now != want; sched_yield()) {
#pragma omp atomic read seq_cst
        now = *number;
    }
}

static void add_one(int *number) {
#pragma omp atomic seq_cst
    *number += 1;
}

/* With a team of four. The last thread takes the first quarter of the values, and so on. */
static void quarters_downwards(void) {
    int turn = 0;
#pragma omp parallel
    {
        wait_for(&turn, 3 - omp_get_thread_num());
#pragma omp for schedule(monotonic : dynamic, 100) nowait
        for (int i = 0; i < 400; i++) {
            if (i % 100 == 0) add_one(&turn), wait_for(&turn, 4);
        }
    }
}

static void follow(void) {
    static int owner[400];
    int last = -1, wrong = 0;
    quarters_downwards();
#pragma omp parallel reduction(+ : wrong)
    {
        int me = omp_get_thread_num();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 400; i++) owner[i] = me;
#pragma omp for schedule(static) lastprivate(last)
        for (int i = 10; i < 410; i++) wrong += owner[i - 10] != me, last = i;
    }
    for (int i = 0; i < 400; i++) wrong += owner[i] != owner[i / 100 * 100];
    printf("%d %d %d %d, last %d, wrong %d\n", owner[0], owner[100], owner[200], owner[300], last, wrong);
}

/* Five iterations. Threads start in ascending order, and each executes one of the first four. */
static void use_blocks(volatile char *memory, long block, int *owner) {
    int turn = 0;
#pragma omp parallel
    {
        wait_for(&turn, omp_get_thread_num());
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 5; i++) {
            memory[i * block] += 1;
            owner[i] = omp_get_thread_num();
            if (i < 4) add_one(&turn), wait_for(&turn, 4);
        }
    }
}

static void pages(void) {
    enum { BLOCK = 1 << 21 };
    static int owner[5];
    int (*next_touch)(const void *, size_t);
    int (*move)(const void *, size_t, int, void *);
    *(void **)(&next_touch) = dlsym(NULL, "hn_next_touch");
    *(void **)(&move) = dlsym(NULL, "hn_move");
    char *memory = aligned_alloc(BLOCK, 5 * BLOCK);
    memset(memory, 1, 5 * BLOCK);
    if (next_touch) printf("next touch %d\n", next_touch(memory, 5 * BLOCK));
    use_blocks(memory, BLOCK, owner);
    for (int i = 0; i < 4; i++) printf("%d%c", owner[i] / 2, i < 3 ? ' ' : '\n');
    if (move) printf("moved %d\n", move(memory, 2 * BLOCK, 1, NULL) | move(memory + 2 * BLOCK, 3 * BLOCK, 0, NULL));
    use_blocks(memory, BLOCK, owner);
    for (int i = 0; i < 4; i++) printf("%d%c", owner[i] / 2, i < 3 ? ' ' : '\n');
    free(memory);
}

/* Two loops elsewhere: one is named before its team begins, the other by all threads. */
static void named_elsewhere(int *owner, int *inside, int n, int (*name)(unsigned)) {
    if (name) name(9);
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < n; i++) work(i * 5), owner[i] = omp_get_thread_num();
        if (name) name(9);
#pragma omp for schedule(dynamic, 4)
        for (int i = 0; i < n; i++) work(i), inside[i] = omp_get_thread_num();
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    if (!strcmp(what, "all")) {
        for (int round = 0; round < 3; round++) {
            forms();
            static_forms();
            same_threads();
            teams_inside();
            of_the_programs_choice();
            no_waiting(30);
            nested();
            cancelled();
            teams_that_change();
            triangle();
            others();
        }
    } else if (!strcmp(what, "map")) {
        static int first[1000], now[1000];
        int times = argc > 2 ? atoi(argv[2]) : 10, same = 0;
        for (int t = 0; t < times; t++) {
            owners_of(t ? now : first, 1000);
            same += t && !memcmp(first, now, sizeof first);
        }
        printf("%d of %d\n", same, times - 1);
    } else if (!strcmp(what, "owners")) {
        static int owner[400];
        int n = argc > 2 ? atoi(argv[2]) : 400;
        for (int t = 0; t < 2; t++) {
            owners_of(owner, n);
            for (int i = 0; i < n; i++) printf("%d%c", owner[i], i + 1 < n ? ' ' : '\n');
        }
    } else if (!strcmp(what, "follow")) {
        follow();
    } else if (!strcmp(what, "pages")) {
        pages();
    } else if (!strcmp(what, "named")) {
        static int owner[3][400];
        int (*name)(unsigned);
        *(void **)(&name) = dlsym(NULL, "hn_loop");
        if (name) name(9);
        owners_of(owner[0], 400);
        named_elsewhere(owner[1], owner[2], 400, name);
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < 400; i++) printf("%d%c", owner[t][i], i < 399 ? ' ' : '\n');
    } else {
        int times = atoi(argv[2]), n = atoi(argv[3]);
        struct timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        for (int t = 0; t < times; t++) {
#pragma omp parallel
            {
#pragma omp for schedule(dynamic)
                for (int i = 0; i < n; i++) __asm__ volatile("" : : "r"(i));
            }
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
        printf("%.2f\n", ns / times / n);
    }
    return 0;
}
