/* heat: diffusion on a plate, Jacobi's five-point sweep between two grids.
 *
 * u'(i,j) = u(i,j) + 1/5 (sum of the four neighbours - 4 u(i,j)), zero on the border.
 *
 * Verified in closed form: the sampled sine of half a wave in each direction is an eigenvector of
 * the sweep. So after k sweeps of n by m points u is exactly
 * (1 - 4/5 (sin^2(pi / 2 / (n + 1)) + sin^2(pi / 2 / (m + 1))))^k times the start. No other
 * eigenvector decays slower, so rounding errors never outgrow the solution. The plate is a square
 * unless `--columns` says otherwise.
 *
 * Placement. `--init parallel`: each thread clears the rows that it sweeps; `serial`: the initial
 * thread clears all. Each page is then used by one thread and, at the seams, its neighbour: the
 * simplest case for any placement policy.
 *
 * Robertson and Rendell's Table 2 is this program with `--size 1500 --columns 2048 --pairs`: thread
 * and rows of each pair on nodes of one's choice.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "homenode.h"
#include "options.h"
#include "pairs.h"
#include "report.h"
#include "share.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RATE 0.2
#define PI 3.14159265358979323846

#define MOST 100000 /* points an edge */

/* Points a row: what --columns says, or as many as there are rows; -1: no such number. */
static int64_t columns(int64_t size)
{
    const char *text = kernel_text_option("--columns");
    if (!text)
        return size;
    char *end;
    long long n = strtoll(text, &end, 10);
    return *end || n < 2 || n > MOST ? -1 : n;
}

static double bytes(int64_t size, int letter)
{
    (void)letter;
    return 2.0 * sizeof(double) * (double)(size + 2) * (double)(columns(size) + 2);
}

static const struct kernel_about about = {
    .name = "heat",
    .summary = "heat diffusion in two dimensions, Jacobi, two grids",
    .size_meaning = "inner points an edge",
    .classes_from = "points an edge",
    .example = "heat --size 2048 --iterations 50 --threads 4 --init serial",
    .classes = {{'S', 128, 50}, {'W', 512, 100}, {'A', 2048, 100}, {'B', 8192, 100}},
    .default_class = 'A',
    .least_size = 2,
    .most_size = MOST,
    .extras = EXTRA_PAIRS | EXTRA_COLUMNS,
    .bytes = bytes,
};

struct plate {
    int64_t n, m, width; /* rows, points a row, and with the border: width = m + 2 */
    double *now, *next;
};

static double start(const struct plate *p, int64_t i, int64_t j)
{
    return sin(PI / (double)(p->n + 1) * (double)i) * sin(PI / (double)(p->m + 1) * (double)j);
}

static void clear_row(struct plate *p, int64_t i)
{
    for (int64_t j = 0; j < p->width; j++) {
        p->now[i * p->width + j] = 0.0;
        p->next[i * p->width + j] = 0.0;
    }
}

/* The border rows go with their neighbours, so that the schedule is that of the sweep. */
static void touch_row(struct plate *p, int64_t i)
{
    if (i == 1)
        clear_row(p, 0);
    clear_row(p, i);
    if (i == p->n)
        clear_row(p, p->n + 1);
    for (int64_t j = 1; j <= p->m; j++)
        p->now[i * p->width + j] = start(p, i, j);
}

/* Where a thread's rows of a grid begin and end under OpenMP's static schedule, which gives the
 * first threads the odd ones. */
static struct share rows_of(int64_t n, int threads, int thread)
{
    int64_t each = n / threads, odd = n % threads, first = each * thread + (thread < odd ? thread : odd);
    struct share s = {1 + first, 1 + first + each + (thread < odd)};
    return s;
}

/* Calls for the rows of each pair in both grids. */
static int place(const struct plate *p, const struct pairs *pairs)
{
    int status = KERNEL_RUN;
    for (int i = 0; i < 2 * pairs->count && status == KERNEL_RUN; i++) {
        double *grid = i % 2 ? p->next : p->now;
        struct share rows = rows_of(p->n, pairs->count, i / 2);
        status = pairs_place(&about, pairs, i / 2, grid + rows.first * p->width, grid + rows.end * p->width);
    }
    return status;
}

static int is_placed(const struct plate *p, const struct pairs *pairs)
{
    int64_t pages = 0;
    int right = pairs_verify_threads(pairs);
    for (int i = 0; i < 2 * pairs->count; i++) {
        double *grid = i % 2 ? p->next : p->now;
        struct share rows = rows_of(p->n, pairs->count, i / 2);
        right &= pairs_verify(pairs, i / 2, grid + rows.first * p->width, grid + rows.end * p->width, &pages);
    }
    kernel_note_count("placed_pages", pages);
    return right;
}

static struct plate make(int64_t n)
{
    struct plate p = {.n = n, .m = columns(n)};
    p.width = p.m + 2;
    size_t points = (size_t)((p.n + 2) * p.width);
    p.now = kernel_allocate(points, sizeof *p.now, "the grid");
    p.next = kernel_allocate(points, sizeof *p.next, "the next grid");
    return p;
}

static void touch(struct plate *p, int serial)
{
#pragma omp parallel for schedule(static) if (!serial)
    for (int64_t i = 1; i <= p->n; i++)
        touch_row(p, i);
}

static void sweep_row(const double *restrict above, const double *restrict row, const double *restrict below,
                      double *restrict out, int64_t m)
{
    for (int64_t j = 1; j <= m; j++)
        out[j] = row[j] + RATE * (above[j] + below[j] + row[j - 1] + row[j + 1] - 4.0 * row[j]);
}

static void sweep(struct plate *p)
{
    int64_t w = p->width;
    const double *now = p->now;
    double *next = p->next;
#pragma omp parallel for schedule(static)
    for (int64_t i = 1; i <= p->n; i++)
        sweep_row(now + (i - 1) * w, now + i * w, now + (i + 1) * w, next + i * w, p->m);
    p->next = p->now;
    p->now = next;
}

static void mark_next_touch(const struct plate *p)
{
    size_t bytes = (size_t)((p->n + 2) * p->width) * sizeof *p->now;
    kernel_note_next_touch(hn_next_touch(p->now, bytes));
    kernel_note_next_touch(hn_next_touch(p->next, bytes));
}

static void iterate(struct plate *p, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            mark_next_touch(p);
        sweep(p);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

/* Largest deviation, in units of what is left of the start. */
static int verify(const struct plate *p, int32_t iterations)
{
    double down = sin(0.5 * PI / (double)(p->n + 1)), across = sin(0.5 * PI / (double)(p->m + 1));
    double left = pow(1.0 - 4.0 * RATE * (down * down + across * across), iterations), worst = 0.0;
    for (int64_t i = 1; i <= p->n; i++)
        for (int64_t j = 1; j <= p->m; j++) {
            double error = fabs(p->now[i * p->width + j] - left * start(p, i, j));
            worst = error > worst || isnan(error) ? error : worst;
        }
    /* A sweep rounds about eight times; below DBL_MIN / DBL_EPSILON numbers lose digits. */
    double scale = left > DBL_MIN / DBL_EPSILON ? left : DBL_MIN / DBL_EPSILON;
    return kernel_verify_bound("largest relative deviation from the exact decay", worst / scale,
                               8.0 * DBL_EPSILON * (iterations + 4.0));
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    if (columns(options.size) < 0)
        return kernel_refuse(&about, "--columns %s: a number from 2 to %d", kernel_text_option("--columns"), MOST);
    struct pairs pairs;
    status = pairs_parse(&about, &options, &pairs);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct plate p = make(options.size);
    if (pairs.count && ((status = pairs_bind(&about, &pairs)) != KERNEL_RUN || (status = place(&p, &pairs)) != KERNEL_RUN))
        return status;
    touch(&p, options.serial_init);
    iterate(&p, &options);
    int placed = !pairs.count || is_placed(&p, &pairs);
    status = verify(&p, options.iterations);
    if (!placed) {
        fprintf(stderr, "heat: threads or rows were not where --pairs wants them\n");
        status = 1;
    }
    free(p.now);
    free(p.next);
    return status;
}
