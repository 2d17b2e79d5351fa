/* Times, table or JSON, verification line.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include "homenode.h"
#include "memory.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_ROWS 100 /* a longer table (LU: one row a column) is cut, --json has all */
#define ROWS_WHEN_CUT 10
#define MOST_COUNTS 8

/* A kernel is one run of one program, so one static record will do. */
static struct {
    const struct kernel_about *about;
    const struct kernel_options *options;
    double *marks; /* seconds, iterations + 1 of them */
    double cpu_begin, cpu_end;
    double section_begin; /* 0: with round 0 */
    int next_touch_code; /* the worst answer; -1: not asked */
    int next_touch_done; /* for some array the answer was HN_OK */
    int counts;
    struct {
        const char *name;
        int64_t value;
    } count[MOST_COUNTS];
} run = {.next_touch_code = -1};

struct verdict {
    const char *state; /* successful, FAILED, not checked */
    char detail[512];  /* text behind it */
    const char *what;
    double value, expected, error;
};

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *or_leave(void *memory, size_t count, size_t size, const char *what)
{
    if (memory)
        return memory;
    fprintf(stderr, "no memory for %s (%zu times %zu bytes): try a smaller --class or --size\n", what, count, size);
    exit(2);
}

/* With --init round-robin, whose arrays come before any work is done: inside of a parallel region
 * it is work space. */
static void *deal(void *array, size_t bytes)
{
    if (run.options && run.options->round_robin && !omp_in_parallel())
        kernel_deal_pages(array, bytes);
    return array;
}

void *kernel_allocate(size_t count, size_t size, const char *what)
{
    return deal(or_leave(count <= SIZE_MAX / size ? malloc(count * size) : NULL, count, size, what), count * size);
}

void *kernel_allocate_aligned(size_t alignment, size_t count, size_t size, const char *what)
{
    if (alignment <= sizeof(double))
        return kernel_allocate(count, size, what);
    void *array = count <= SIZE_MAX / size ? aligned_alloc(alignment, count * size) : NULL;
    return deal(or_leave(array, count, size, what), count * size);
}

void kernel_start(const struct kernel_about *about, const struct kernel_options *options)
{
    run.about = about;
    run.marks = kernel_allocate((size_t)options->iterations + 1, sizeof *run.marks, "the times");
    run.options = options;
}

/* A mark for the monitor of homenode's lab, which counts between the first and the last one where
 * it is asked for: a no-op to everybody else (docs/lab.md). */
#ifdef __x86_64__
#define LAB_MARK(code) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x686e0000+" #code ::: "memory")
#else
#define LAB_MARK(code) (void)0
#endif

void kernel_mark(int32_t iteration)
{
    int first = iteration == 0, last = iteration == run.options->iterations;
    int marked = (first || last) && getenv("HOMENODE_LAB_ITERATIONS") != NULL;
    if (first)
        run.cpu_begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (last)
        run.cpu_end = seconds(CLOCK_PROCESS_CPUTIME_ID);
    run.marks[iteration] = seconds(CLOCK_MONOTONIC);
    if (marked && last)
        LAB_MARK(2);
    else if (marked)
        LAB_MARK(1);
}

void kernel_begin_section(void)
{
    run.section_begin = seconds(CLOCK_MONOTONIC);
}

void kernel_note_next_touch(int code)
{
    if (code > run.next_touch_code)
        run.next_touch_code = code;
    run.next_touch_done |= code == HN_OK;
}

void kernel_note_count(const char *name, int64_t value)
{
    if (run.counts == MOST_COUNTS)
        return;
    run.count[run.counts].name = name;
    run.count[run.counts++].value = value;
}

static double round_seconds(int k)
{
    return run.marks[k + 1] - run.marks[k];
}

/* One word for JSON, the rest of the sentence for people. */
static const char *next_touch_word(void)
{
    switch (run.next_touch_code) {
    case -1:
        return "not requested";
    case HN_OK:
        return "accepted";
    case HN_IDLE:
        return run.next_touch_done ? "accepted in part" : "ignored";
    default:
        return "refused";
    }
}

static const char *next_touch_reason(void)
{
    switch (run.next_touch_code) {
    case HN_IDLE:
        return run.next_touch_done ? ": homenode had nothing to do for some of the arrays"
                                   : ": homenode is not watching this program";
    case HN_EINVAL:
        return ": homenode said that an argument makes no sense";
    default:
        return "";
    }
}

/* How often sorting compares depends on the measured times: not a part of the program that is
 * recorded. */
__attribute__((no_sanitize_thread)) static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_summary(int count)
{
    double *sorted = kernel_allocate((size_t)count, sizeof *sorted, "the summary");
    for (int k = 0; k < count; k++)
        sorted[k] = round_seconds(k);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    printf("an iteration: first %.6f s, min %.6f s, median %.6f s, max %.6f s\n", round_seconds(0), sorted[0],
           sorted[count / 2], sorted[count - 1]);
    free(sorted);
}

static void print_header(const struct kernel_options *o)
{
    printf("%s: ", run.about->name);
    if (o->class_letter)
        printf("class %c, ", o->class_letter);
    printf("size %" PRId64 ", %" PRId32 " iterations, %" PRId32 " threads, %s initialisation\n", o->size,
           o->iterations, o->threads, kernel_init_name(o));
}

static void print_table(const struct verdict *v)
{
    const struct kernel_options *o = run.options;
    int rows = o->iterations > MOST_ROWS ? ROWS_WHEN_CUT : o->iterations;
    print_header(o);
    printf("iteration      seconds\n");
    for (int k = 0; k < rows; k++)
        printf("%9d %12.6f\n", k, round_seconds(k));
    if (rows < o->iterations)
        printf("(%" PRId32 " more: --json prints all)\n", o->iterations - rows);
    print_summary(o->iterations);
    printf("timed section: %.6f s, %.6f CPU s\n", run.marks[o->iterations] - run.marks[0], run.cpu_end - run.cpu_begin);
    for (int i = 0; i < run.counts; i++)
        printf("%s: %" PRId64 "\n", run.count[i].name, run.count[i].value);
    if (run.section_begin > 0.0)
        printf("benchmark section: %.6f s, with the initial state\n", run.marks[o->iterations] - run.section_begin);
    if (run.next_touch_code >= 0)
        printf("next touch: %s%s\n", next_touch_word(), next_touch_reason());
    printf("verification: %s (%s)\n", v->state, v->detail);
}

/* JSON has no NaN. */
static void print_json_number(const char *name, double value)
{
    if (isfinite(value))
        printf(",\"%s\":%.17g", name, value);
    else
        printf(",\"%s\":null", name);
}

static void print_json_verdict(const struct verdict *v)
{
    printf("\"verification\":{\"state\":\"%s\",\"detail\":\"%s\",\"quantity\":\"%s\"", v->state, v->detail, v->what);
    print_json_number("value", v->value);
    print_json_number("expected", v->expected);
    print_json_number("error", v->error);
    printf("}");
}

static void print_json_counts(void)
{
    printf(",\"counts\":{");
    for (int i = 0; i < run.counts; i++)
        printf("%s\"%s\":%" PRId64, i ? "," : "", run.count[i].name, run.count[i].value);
    printf("}");
}

static void print_json(const struct verdict *v)
{
    static const char *const schedules[] = {"block", "cyclic", "affinity"};
    const struct kernel_options *o = run.options;
    printf("{\"schema\":1,\"kernel\":\"%s\"", run.about->name);
    if (o->class_letter)
        printf(",\"class\":\"%c\"", o->class_letter);
    printf(",\"size\":%" PRId64 ",\"iterations\":%" PRId32 ",\"threads\":%" PRId32 ",\"init\":\"%s\"", o->size,
           o->iterations, o->threads, kernel_init_name(o));
    if (run.about->extras & EXTRA_SCHEDULE)
        printf(",\"schedule\":\"%s\"", schedules[o->schedule]);
    if (run.about->extras & EXTRA_LAYOUT)
        printf(",\"layout\":\"%s\"", o->layout == LAYOUT_ROWS ? "rows" : "contiguous");
    if (run.about->extras & EXTRA_PADDED)
        printf(",\"padded\":%s", o->padded ? "true" : "false");
    printf(",\"next_touch\":\"%s\"", next_touch_word());
    if (run.counts)
        print_json_counts();
    print_json_number("seconds", run.marks[o->iterations] - run.marks[0]);
    print_json_number("cpu_seconds", run.cpu_end - run.cpu_begin);
    if (run.section_begin > 0.0)
        print_json_number("section_seconds", run.marks[o->iterations] - run.section_begin);
    printf(",\"iteration_seconds\":[");
    for (int k = 0; k < o->iterations; k++)
        printf("%s%.9f", k ? "," : "", round_seconds(k));
    printf("],");
    print_json_verdict(v);
    printf("}\n");
}

static int finish(const struct verdict *v, int status)
{
    if (run.options->json)
        print_json(v);
    else
        print_table(v);
    free(run.marks);
    return fflush(stdout) ? 1 : status;
}

int kernel_verify_value(const char *what, double value, double expected, double relative_tolerance)
{
    struct verdict v = {.what = what, .value = value, .expected = expected};
    v.error = fabs(value - expected) / fabs(expected);
    int right = v.error <= relative_tolerance; /* false for NaN */
    v.state = right ? "successful" : "FAILED";
    snprintf(v.detail, sizeof v.detail, "%s = %.14g, expected %.14g, error %.2e", what, value, expected, v.error);
    return finish(&v, !right);
}

/* The values are those of the check that is furthest beyond, or nearest to, its bound. */
int kernel_verify_checks(const struct kernel_check *checks, int count)
{
    struct verdict v = {.expected = 0.0};
    size_t used = 0;
    double worst = -1.0;
    int right = 1;
    for (int i = 0; i < count; i++) {
        const struct kernel_check *c = &checks[i];
        double share = c->error / c->bound;
        right &= c->error <= c->bound; /* false for NaN */
        if (!(share <= worst)) {
            worst = share;
            v.what = c->what;
            v.value = v.error = c->error;
        }
        if (used < sizeof v.detail)
            used += (size_t)snprintf(v.detail + used, sizeof v.detail - used, "%s%s = %.3e, allowed %.3e",
                                     i ? "; " : "", c->what, c->error, c->bound);
    }
    v.state = right ? "successful" : "FAILED";
    return finish(&v, !right);
}

int kernel_verify_bound(const char *what, double error, double bound)
{
    struct verdict v = {.what = what, .value = error, .expected = 0.0, .error = error};
    int right = error <= bound;
    v.state = right ? "successful" : "FAILED";
    snprintf(v.detail, sizeof v.detail, "%s = %.3e, allowed %.3e", what, error, bound);
    return finish(&v, !right);
}

int kernel_verify_bounds(const struct kernel_bound *bounds, int count)
{
    struct verdict v = {.expected = 0.0};
    int right = 1;
    size_t length = 0;
    double worst = -1.0;
    for (int i = 0; i < count; i++) {
        const struct kernel_bound *b = &bounds[i];
        double inside = b->value > 0.0 ? b->value / b->bound : 0.0;
        double ratio = b->value <= b->bound ? inside : INFINITY; /* NaN is beyond any bound */
        right = right && b->value <= b->bound;
        if (ratio > worst) {
            worst = ratio;
            v.what = b->what;
            v.value = v.error = b->value;
        }
        if (length < sizeof v.detail)
            length += (size_t)snprintf(v.detail + length, sizeof v.detail - length, "%s%s = %.3e, allowed %.3e",
                                       i ? "; " : "", b->what, b->value, b->bound);
    }
    v.state = right ? "successful" : "FAILED";
    return finish(&v, !right);
}

static double order_between(const struct kernel_order_row *coarse, const struct kernel_order_row *fine)
{
    return log(coarse->error / fine->error) / log((double)fine->size / coarse->size);
}

static void print_order_table(const char *size_name, const char *work_name, const char *error_name,
                              const struct kernel_order_row *rows, int count)
{
    printf("%s: order of accuracy\n%14s %12s %20s %7s\n", run.about->name, size_name, work_name, error_name, "order");
    for (int i = 0; i < count; i++) {
        printf("%14d %12d %20.6e", rows[i].size, rows[i].work, rows[i].error);
        if (i)
            printf(" %7.3f", order_between(&rows[i - 1], &rows[i]));
        printf("\n");
    }
}

static void print_order_json(const struct kernel_order_row *rows, int count)
{
    printf("{\"schema\":1,\"kernel\":\"%s\",\"order\":[", run.about->name);
    for (int i = 0; i < count; i++) {
        printf("%s{\"size\":%d,\"work\":%d", i ? "," : "", rows[i].size, rows[i].work);
        print_json_number("error", rows[i].error);
        print_json_number("order", i ? order_between(&rows[i - 1], &rows[i]) : NAN);
        printf("}");
    }
    printf("],");
}

int kernel_verify_order(const char *size_name, const char *work_name, const char *error_name,
                        const struct kernel_order_row *rows, int count, double least)
{
    struct verdict v = {.what = "order of accuracy", .expected = least, .error = NAN};
    v.value = count > 1 ? order_between(&rows[count - 2], &rows[count - 1]) : NAN;
    int right = v.value >= least;
    v.state = right ? "successful" : "FAILED";
    snprintf(v.detail, sizeof v.detail, "order of accuracy = %.3f, at least %.3f", v.value, least);
    if (run.options->json) {
        print_order_json(rows, count);
        print_json_verdict(&v);
        printf("}\n");
    } else {
        print_order_table(size_name, work_name, error_name, rows, count);
        printf("verification: %s (%s)\n", v.state, v.detail);
    }
    free(run.marks);
    return fflush(stdout) ? 1 : !right;
}

int kernel_not_verified(const char *reason, const char *what, double value)
{
    struct verdict v = {.what = what, .value = value, .expected = NAN, .error = NAN};
    int sane = isfinite(value); /* the one thing that holds whatever the size */
    v.state = sane ? "not checked" : "FAILED";
    snprintf(v.detail, sizeof v.detail, "%s", reason);
    return finish(&v, !sane);
}
