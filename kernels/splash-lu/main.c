/* splash-lu: factors a dense, diagonally dominant matrix in place, A = L U, by square blocks,
 * without pivoting.
 *
 * Source: S. C. Woo, J. P. Singh and J. L. Hennessy, The Performance Advantages of Integrating
 * Block Data Transfer in Cache-Coherent Multiprocessors, ASPLOS 1994, and S. C. Woo et al., The
 * SPLASH-2 Programs, ISCA 1995, section 3 (LU): 16 x 16 blocks, dealt over a grid of threads (2-D
 * scatter), a block is updated by its owner only. Round k:
 *   its owner factors diagonal block k; the owners of column k solve with U, those of row k with L;
 *   the owners of the blocks to the right and below subtract the product of the two.
 * Tao, Schulz and Karl use a 128 x 128 matrix. The column-wise kernel of Nikolopoulos et al. is
 * `lu`.
 *
 * `--layout contiguous` keeps a block in one piece and an owner's blocks side by side, starting on
 * a page of their own; `--layout rows` keeps the matrix in rows, so that a block's rows are n
 * numbers apart and owners share pages.
 *
 * Verified by L U x = A x for a random x, with A made again from its formula; after fewer rounds
 * with the part that is not yet eliminated in U's place.
 *
 * Placement. `--init parallel`: the owner makes its blocks; `serial`: the initial thread makes all.
 * In the contiguous layout each page has one writer; in rows, a page of 4 KiB is written by a whole
 * row of the grid of threads.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "dense.h"
#include "homenode.h"
#include "options.h"
#include "report.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#define BLOCK 16
#define PAGE_BLOCKS 2 /* blocks of 2 KiB in a page of 4 KiB */

static double bytes(int64_t size, int letter)
{
    (void)letter;
    return (double)sizeof(double) * (double)size * (double)size;
}

static const struct kernel_about about = {
    .name = "splash-lu",
    .summary = "SPLASH-2 LU, blocked dense LU factorisation",
    .size_meaning = "rows and columns, a multiple of 16",
    .classes_from = "rows (S as in Tao, Schulz and Karl, W as in SPLASH-2)",
    .example = "splash-lu --size 1024 --layout rows --threads 4",
    .classes = {{'S', 128, 0}, {'W', 512, 0}, {'A', 1024, 0}, {'B', 4096, 0}},
    .default_class = 'A',
    .least_size = 2 * BLOCK,
    .most_size = 65536,
    .rows_a_round = BLOCK,
    .bytes = bytes,
    .extras = EXTRA_LAYOUT,
};

/* A block's rows begin every `stride` numbers. */
struct matrix {
    int64_t n, blocks; /* rows; blocks an edge */
    int threads, grid_rows, grid_columns;
    int contiguous;
    int64_t done; /* columns that are eliminated in the end */
    int64_t stride;
    int64_t *owner_first; /* contiguous: number of each thread's first block, and the end */
    double *a;
};

static int owner(const struct matrix *d, int64_t i, int64_t j)
{
    return (int)(i % d->grid_rows * d->grid_columns + j % d->grid_columns);
}

/* Blocks of an edge that fall to place `mine` of `all`. */
static int64_t dealt(int64_t blocks, int mine, int all)
{
    return (blocks - mine + all - 1) / all;
}

static double *block(const struct matrix *d, int64_t i, int64_t j)
{
    if (!d->contiguous)
        return d->a + (i * d->n + j) * BLOCK;
    int64_t across = dealt(d->blocks, (int)(j % d->grid_columns), d->grid_columns);
    int64_t local = i / d->grid_rows * across + j / d->grid_columns;
    return d->a + (d->owner_first[owner(d, i, j)] + local) * BLOCK * BLOCK;
}

static void make_block(const struct matrix *d, int64_t bi, int64_t bj)
{
    double *b = block(d, bi, bj);
    for (int64_t i = 0; i < BLOCK; i++)
        for (int64_t j = 0; j < BLOCK; j++)
            b[i * d->stride + j] = dense_entry(d->n, bi * BLOCK + i, bj * BLOCK + j);
}

/* B = L U. */
static void factor(double *b, int64_t stride)
{
    for (int64_t k = 0; k < BLOCK; k++) {
        double inverse = 1.0 / b[k * stride + k];
        for (int64_t i = k + 1; i < BLOCK; i++) {
            double multiple = b[i * stride + k] *= inverse;
            for (int64_t j = k + 1; j < BLOCK; j++)
                b[i * stride + j] -= multiple * b[k * stride + j];
        }
    }
}

/* B = B U^-1 with the U of the diagonal block: for blocks below it. */
static void solve_column(double *restrict b, const double *restrict diagonal, int64_t stride)
{
    for (int64_t k = 0; k < BLOCK; k++) {
        double inverse = 1.0 / diagonal[k * stride + k];
        for (int64_t i = 0; i < BLOCK; i++) {
            double multiple = b[i * stride + k] *= inverse;
            for (int64_t j = k + 1; j < BLOCK; j++)
                b[i * stride + j] -= multiple * diagonal[k * stride + j];
        }
    }
}

/* B = L^-1 B: for blocks right of it. */
static void solve_row(double *restrict b, const double *restrict diagonal, int64_t stride)
{
    for (int64_t k = 0; k < BLOCK; k++)
        for (int64_t i = k + 1; i < BLOCK; i++) {
            double multiple = diagonal[i * stride + k];
            for (int64_t j = 0; j < BLOCK; j++)
                b[i * stride + j] -= multiple * b[k * stride + j];
        }
}

/* C = C - A B. */
static void subtract_product(double *restrict c, const double *restrict a, const double *restrict b, int64_t stride)
{
    for (int64_t i = 0; i < BLOCK; i++) {
        double row[BLOCK];
        for (int64_t j = 0; j < BLOCK; j++)
            row[j] = c[i * stride + j];
        for (int64_t k = 0; k < BLOCK; k++) {
            double multiple = a[i * stride + k];
            for (int64_t j = 0; j < BLOCK; j++)
                row[j] -= multiple * b[k * stride + j];
        }
        for (int64_t j = 0; j < BLOCK; j++)
            c[i * stride + j] = row[j];
    }
}

/* Smallest index from `least` on that falls to place `mine` of `all`. */
static int64_t own_from(int64_t least, int mine, int all)
{
    return least + (mine - least % all + all) % all;
}

static void solve_perimeter(const struct matrix *d, int64_t k, int row, int column)
{
    const double *diagonal = block(d, k, k);
    if (k % d->grid_columns == column)
        for (int64_t i = own_from(k + 1, row, d->grid_rows); i < d->blocks; i += d->grid_rows)
            solve_column(block(d, i, k), diagonal, d->stride);
    if (k % d->grid_rows == row)
        for (int64_t j = own_from(k + 1, column, d->grid_columns); j < d->blocks; j += d->grid_columns)
            solve_row(block(d, k, j), diagonal, d->stride);
}

static void update_interior(const struct matrix *d, int64_t k, int row, int column)
{
    for (int64_t i = own_from(k + 1, row, d->grid_rows); i < d->blocks; i += d->grid_rows) {
        const double *left = block(d, i, k);
        for (int64_t j = own_from(k + 1, column, d->grid_columns); j < d->blocks; j += d->grid_columns)
            subtract_product(block(d, i, j), left, block(d, k, j), d->stride);
    }
}

static void eliminate(const struct matrix *d, int64_t k)
{
#pragma omp parallel
    {
        int me = omp_get_thread_num(), row = me / d->grid_columns, column = me % d->grid_columns;
        if (owner(d, k, k) == me)
            factor(block(d, k, k), d->stride);
#pragma omp barrier
        solve_perimeter(d, k, row, column);
#pragma omp barrier
        update_interior(d, k, row, column);
    }
}

static void iterate(const struct matrix *d, size_t bytes, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            kernel_note_next_touch(hn_next_touch(d->a, bytes));
        eliminate(d, k);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

/* An element wherever its block lies. */
static double at(const struct matrix *d, int64_t i, int64_t j)
{
    return block(d, i / BLOCK, j / BLOCK)[i % BLOCK * d->stride + j % BLOCK];
}

/* y = U x, then y = L y, where the first `done` columns are eliminated and the rest of L is the
 * identity. An element right of and below them belongs to U's place. */
static void multiply_factors(const void *factors, const double *x, double *y)
{
    const struct matrix *d = factors;
    int64_t done = d->done;
    for (int64_t i = 0; i < d->n; i++) {
        y[i] = 0.0;
        for (int64_t j = i < done ? i : done; j < d->n; j++)
            y[i] += at(d, i, j) * x[j];
    }
    for (int64_t i = d->n - 1; i > 0; i--)
        for (int64_t j = 0; j < (i < done ? i : done); j++)
            y[i] += at(d, i, j) * y[j];
}

/* The grid of threads is as square as their number allows. */
static void shape_grid(struct matrix *d)
{
    d->grid_rows = (int)sqrt((double)d->threads);
    while (d->threads % d->grid_rows)
        d->grid_rows--;
    d->grid_columns = d->threads / d->grid_rows;
}

/* Gives each owner whole pages; returns the number of blocks with the gaps. */
static int64_t count_blocks(const struct matrix *d)
{
    int64_t count = 0;
    for (int t = 0; t < d->threads; t++) {
        d->owner_first[t] = count;
        int64_t own = dealt(d->blocks, t / d->grid_columns, d->grid_rows) *
                      dealt(d->blocks, t % d->grid_columns, d->grid_columns);
        count += (own + PAGE_BLOCKS - 1) / PAGE_BLOCKS * PAGE_BLOCKS;
    }
    return count;
}

static void fill(const struct matrix *d, int serial)
{
#pragma omp parallel if (!serial)
    for (int64_t i = 0; i < d->blocks; i++)
        for (int64_t j = 0; j < d->blocks; j++)
            if (serial || owner(d, i, j) == omp_get_thread_num())
                make_block(d, i, j);
}

static struct matrix make(const struct kernel_options *options, size_t *bytes)
{
    struct matrix d = {.n = options->size, .blocks = options->size / BLOCK, .threads = options->threads};
    d.contiguous = options->layout == LAYOUT_CONTIGUOUS;
    d.stride = d.contiguous ? BLOCK : d.n;
    d.done = (int64_t)options->iterations * BLOCK;
    shape_grid(&d);
    d.owner_first = kernel_allocate((size_t)d.threads, sizeof *d.owner_first, "the owners' blocks");
    size_t blocks = (size_t)(d.contiguous ? count_blocks(&d) : d.blocks * d.blocks);
    size_t block_bytes = BLOCK * BLOCK * sizeof *d.a;
    if (d.contiguous)
        d.a = kernel_allocate_aligned(PAGE_BLOCKS * block_bytes, blocks, block_bytes, "the matrix");
    else
        d.a = kernel_allocate(blocks, block_bytes, "the matrix");
    *bytes = blocks * block_bytes;
    fill(&d, options->serial_init);
    return d;
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    if (options.size % BLOCK)
        return kernel_refuse(&about, "--size %lld: not a multiple of the blocks' edge, %d", (long long)options.size,
                             BLOCK);
    kernel_start(&about, &options);
    size_t bytes;
    struct matrix d = make(&options, &bytes);
    iterate(&d, bytes, &options);
    status = dense_verify(d.n, multiply_factors, &d);
    free(d.owner_first);
    free(d.a);
    return status;
}
