/* lu: factors a dense, diagonally dominant matrix in place, A = L U, right-looking, without
 * pivoting, by columns.
 *
 * The kernel of D. Nikolopoulos, E. Ayguade and C. Polychronopoulos, Runtime vs. Manual Data
 * Distribution for Architecture-Agnostic Shared-Memory Programming Models, section 4.2 (figures 6
 * and 7; 1400 x 1400). Round k divides column k by its pivot and subtracts its multiples from all
 * columns to the right.
 *
 * Who updates which column, `--schedule`:
 *   block     OpenMP's static schedule over the remaining columns: a column changes hands as they
 *             become fewer
 *   cyclic    the remaining columns dealt one by one: balanced, but every column changes hands each
 *             round
 *   affinity  column j always belongs to thread j mod threads: balanced, and a thread keeps its
 *             columns (figure 7)
 *
 * Verified by L U x = A x for a random x, with A made again from its formula. After fewer rounds
 * than columns the same holds with the part that is not yet eliminated in U's place.
 *
 * Placement. `--init parallel`: a column is made by the thread that the schedule gives it;
 * `serial`: the initial thread makes all; `round-robin`: pages are dealt over the threads, the
 * paper's baseline. `--padded` starts each column on a page of its own, without which neighbours
 * share pages.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "dense.h"
#include "homenode.h"
#include "options.h"
#include "report.h"

#include <omp.h>
#include <stdlib.h>

#define DOUBLES_A_PAGE 512 /* 4 KiB */

/* Padded columns take up to a page more. */
static double bytes(int64_t size, int letter)
{
    (void)letter;
    return (double)sizeof(double) * (double)size * (double)(size + DOUBLES_A_PAGE);
}

static const struct kernel_about about = {
    .name = "lu",
    .summary = "dense LU factorisation with block, cyclic or affinity schedule",
    .size_meaning = "rows and columns",
    .classes_from = "rows (A as in Nikolopoulos et al.)",
    .padded_meaning = "start each column on a page of its own (4 KiB)",
    .example = "lu --size 1400 --schedule affinity --threads 4",
    .classes = {{'S', 128, 0}, {'W', 500, 0}, {'A', 1400, 0}, {'B', 4000, 0}},
    .default_class = 'A',
    .least_size = 2,
    .most_size = 50000,
    .rows_a_round = 1,
    .bytes = bytes,
    .extras = EXTRA_SCHEDULE | EXTRA_PADDED,
};

struct dense {
    int64_t n, stride; /* a column begins every `stride` numbers */
    int64_t done;      /* columns that are eliminated in the end */
    double *a;
};

static void make_column(const struct dense *d, int64_t j)
{
    for (int64_t i = 0; i < d->n; i++)
        d->a[j * d->stride + i] = dense_entry(d->n, i, j);
}

typedef void column_work(const struct dense *d, int64_t j, int64_t k);

/* The affinity schedule without a schedule clause: a thread walks through its own columns from
 * `first` on. */
static void each_own_column(const struct dense *d, int64_t first, int64_t k, column_work *work)
{
    int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    for (int64_t j = first + (me - first % threads + threads) % threads; j < d->n; j += threads)
        work(d, j, k);
}

static void make_own(const struct dense *d, int64_t j, int64_t k)
{
    (void)k;
    make_column(d, j);
}

static void fill(const struct dense *d, int schedule, int serial)
{
#pragma omp parallel if (!serial)
    {
        if (schedule == SCHEDULE_AFFINITY)
            each_own_column(d, 0, 0, make_own);
        else if (schedule == SCHEDULE_CYCLIC) {
#pragma omp for schedule(static, 1)
            for (int64_t j = 0; j < d->n; j++)
                make_column(d, j);
        } else {
#pragma omp for schedule(static)
            for (int64_t j = 0; j < d->n; j++)
                make_column(d, j);
        }
    }
}

static void divide(const struct dense *d, int64_t k)
{
    double *column = d->a + k * d->stride;
    double inverse = 1.0 / column[k];
    for (int64_t i = k + 1; i < d->n; i++)
        column[i] *= inverse;
}

static void update(const struct dense *d, int64_t j, int64_t k)
{
    const double *restrict pivot = d->a + k * d->stride;
    double *restrict column = d->a + j * d->stride;
    double factor = column[k];
    for (int64_t i = k + 1; i < d->n; i++)
        column[i] -= factor * pivot[i];
}

static void eliminate_block(const struct dense *d, int64_t k)
{
    divide(d, k);
#pragma omp parallel for schedule(static)
    for (int64_t j = k + 1; j < d->n; j++)
        update(d, j, k);
}

static void eliminate_cyclic(const struct dense *d, int64_t k)
{
    divide(d, k);
#pragma omp parallel for schedule(static, 1)
    for (int64_t j = k + 1; j < d->n; j++)
        update(d, j, k);
}

static void eliminate_affinity(const struct dense *d, int64_t k)
{
#pragma omp parallel
    {
        if (k % omp_get_num_threads() == omp_get_thread_num())
            divide(d, k);
#pragma omp barrier
        each_own_column(d, k + 1, k, update);
    }
}

static void eliminate(const struct dense *d, int64_t k, int schedule)
{
    if (schedule == SCHEDULE_AFFINITY)
        eliminate_affinity(d, k);
    else if (schedule == SCHEDULE_CYCLIC)
        eliminate_cyclic(d, k);
    else
        eliminate_block(d, k);
}

static void iterate(const struct dense *d, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            kernel_note_next_touch(hn_next_touch(d->a, (size_t)(d->n * d->stride) * sizeof *d->a));
        eliminate(d, k, options->schedule);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

/* y = U x, then y = L y, where the first `done` columns are eliminated and the rest of L is the
 * identity. */
static void multiply_factors(const void *factors, const double *x, double *y)
{
    const struct dense *d = factors;
    int64_t done = d->done;
    for (int64_t i = 0; i < d->n; i++)
        y[i] = 0.0;
    for (int64_t j = 0; j < d->n; j++) {
        int64_t rows = j < done ? j + 1 : d->n;
        for (int64_t i = 0; i < rows; i++)
            y[i] += d->a[j * d->stride + i] * x[j];
    }
    for (int64_t j = done - 1; j >= 0; j--)
        for (int64_t i = j + 1; i < d->n; i++)
            y[i] += d->a[j * d->stride + i] * y[j];
}

static struct dense make(const struct kernel_options *options)
{
    struct dense d = {.n = options->size, .stride = options->size, .done = options->iterations};
    size_t alignment = sizeof(double);
    if (options->padded) {
        d.stride = (d.n + DOUBLES_A_PAGE - 1) / DOUBLES_A_PAGE * DOUBLES_A_PAGE;
        alignment = DOUBLES_A_PAGE * sizeof(double);
    }
    d.a = kernel_allocate_aligned(alignment, (size_t)(d.n * d.stride), sizeof *d.a, "the matrix");
    fill(&d, options->schedule, options->serial_init);
    return d;
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct dense d = make(&options);
    iterate(&d, &options);
    status = dense_verify(d.n, multiply_factors, &d);
    free(d.a);
    return status;
}
