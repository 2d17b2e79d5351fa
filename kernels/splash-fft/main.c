/* splash-fft: one-dimensional complex Fourier transform of n points by the six-step method.
 *
 * Source: D. Bailey, FFTs in External or Hierarchical Memory, J. Supercomputing 4 (1990); S. C. Woo
 * et al., The SPLASH-2 Programs, ISCA 1995, section 3 (FFT). Tao, Schulz and Karl use 2^14 points.
 * The points form an m x m matrix, m = sqrt(n), each thread owning neighbouring rows:
 *   transpose, transform the rows and multiply by the roots of unity, transpose, transform the
 *   rows, transpose.
 * A thread transposes tile by tile and takes the owners of the source in turn, its own rows first,
 * so that not all read from the same owner at once (as the paper has it). Even rounds transform,
 * odd rounds transform back; the result lies in the other array after each, so the arrays change
 * roles (ours: it saves a copy).
 *
 * Verified by sums over all points for some frequencies, computed directly, and by the inverse,
 * which must give the input.
 *
 * Placement. Rows of the three arrays are private, but each transposition reads all rows of the
 * other threads: with t threads (t - 1) / t of its reads are remote under any placement.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "fourier.h"
#include "homenode.h"
#include "noise.h"
#include "options.h"
#include "report.h"
#include "share.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#define TILE 16 /* numbers an edge of a transposed tile: four lines */
#define SAMPLES 16

typedef struct complex_number number;

static double bytes(int64_t size, int letter)
{
    (void)letter;
    return 3.0 * sizeof(number) * (double)size;
}

static const struct kernel_about about = {
    .name = "splash-fft",
    .summary = "SPLASH-2 FFT, six-step Fourier transform",
    .size_meaning = "complex points, a power of four",
    .classes_from = "points (S as in Tao, Schulz and Karl, W as in SPLASH-2)",
    .example = "splash-fft --class A --threads 4 --init serial --next-touch",
    .classes = {{'S', 1 << 14, 10}, {'W', 1 << 16, 10}, {'A', 1 << 20, 10}, {'B', 1 << 24, 10}},
    .default_class = 'A',
    .least_size = 16,
    .most_size = INT64_C(1) << 30,
    .power_of_two = 1,
    .bytes = bytes,
};

struct transform {
    int64_t n, m;
    int threads;
    number *from, *to; /* change roles each round */
    number *roots;     /* exp(-2 pi i j k / n) at row j, column k */
    struct fourier *row; /* one a thread */
};

static number point(int64_t place)
{
    number x = {noise(2 * (uint64_t)place), noise(2 * (uint64_t)place + 1)};
    return x;
}

static void start_row(const struct transform *f, int64_t i)
{
    for (int64_t j = 0; j < f->m; j++) {
        int64_t place = i * f->m + j;
        f->from[place] = point(place);
        f->to[place] = (number){0.0, 0.0};
        f->roots[place] = root_of_unity(i * j, f->n);
    }
}

static struct transform make(const struct kernel_options *options)
{
    size_t n = (size_t)options->size;
    struct transform f = {.n = options->size, .threads = options->threads};
    f.m = (int64_t)(sqrt((double)n) + 0.5);
    f.from = kernel_allocate(n, sizeof *f.from, "the points");
    f.to = kernel_allocate(n, sizeof *f.to, "the transposed points");
    f.roots = kernel_allocate(n, sizeof *f.roots, "the roots of unity");
    f.row = kernel_allocate((size_t)f.threads, sizeof *f.row, "the threads' tables");
    int serial = options->serial_init;
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        struct share mine = share_of(f.m, f.threads, me);
        if (serial && me == 0)
            mine = (struct share){0, f.m};
        if (!serial || me == 0)
            for (int64_t i = mine.first; i < mine.end; i++)
                start_row(&f, i);
        f.row[me] = fourier_make(f.m);
    }
    return f;
}

static void transpose_tile(int64_t m, const number *restrict in, number *restrict out, struct share rows,
                           struct share columns)
{
    for (int64_t i = rows.first; i < rows.end; i++)
        for (int64_t j = columns.first; j < columns.end; j++)
            out[i * m + j] = in[j * m + i];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The part of `out`'s rows `mine` that comes from the rows of one owner. */
static void transpose_patch(int64_t m, const number *in, number *out, struct share mine, struct share source)
{
    for (int64_t i = mine.first; i < mine.end; i += TILE)
        for (int64_t j = source.first; j < source.end; j += TILE)
            transpose_tile(m, in, out, (struct share){i, least(i + TILE, mine.end)},
                           (struct share){j, least(j + TILE, source.end)});
}

/* Ends with a barrier: afterwards all of `out` is there, and nobody reads `in` any more. */
static void transpose(const struct transform *f, const number *in, number *out)
{
    int me = omp_get_thread_num();
    struct share mine = share_of(f->m, f->threads, me);
    for (int t = 0; t < f->threads; t++)
        transpose_patch(f->m, in, out, mine, share_of(f->m, f->threads, (me + t) % f->threads));
#pragma omp barrier
}

static void multiply_row(const struct transform *f, number *row, const number *roots, int sign)
{
    for (int64_t k = 0; k < f->m; k++) {
        number w = roots[k];
        if (sign > 0)
            w.im = -w.im;
        row[k] = complex_product(row[k], w);
    }
}

static void scale_row(const struct transform *f, number *row)
{
    double factor = 1.0 / (double)f->n;
    for (int64_t k = 0; k < f->m; k++) {
        row[k].re *= factor;
        row[k].im *= factor;
    }
}

static void six_steps(const struct transform *f, int sign)
{
    number *from = f->from, *to = f->to;
    struct share mine = share_of(f->m, f->threads, omp_get_thread_num());
    const struct fourier *table = &f->row[omp_get_thread_num()];
    transpose(f, from, to);
    for (int64_t i = mine.first; i < mine.end; i++) {
        fourier_row(table, to + i * f->m, sign);
        multiply_row(f, to + i * f->m, f->roots + i * f->m, sign);
    }
#pragma omp barrier
    transpose(f, to, from);
    for (int64_t i = mine.first; i < mine.end; i++) {
        fourier_row(table, from + i * f->m, sign);
        if (sign > 0)
            scale_row(f, from + i * f->m);
    }
#pragma omp barrier
    transpose(f, from, to);
}

static void run_round(struct transform *f, int sign)
{
#pragma omp parallel
    six_steps(f, sign);
    number *swap = f->from;
    f->from = f->to;
    f->to = swap;
}

static void ask_next_touch(const struct transform *f)
{
    number *const arrays[] = {f->from, f->to, f->roots};
    for (int i = 0; i < 3; i++)
        kernel_note_next_touch(hn_next_touch(arrays[i], (size_t)f->n * sizeof(number)));
}

static void iterate(struct transform *f, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            ask_next_touch(f);
        run_round(f, k % 2 ? 1 : -1);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

/* The transform at frequency k of the points, computed again from their formula: with j = m r + c
 * the root is a product of two, and 2 m sines and cosines are enough. */
static number direct_sum(const struct transform *f, int64_t k)
{
    number sum = {0.0, 0.0};
    for (int64_t r = 0; r < f->m; r++) {
        number part = {0.0, 0.0};
        for (int64_t c = 0; c < f->m; c++) {
            number term = complex_product(point(r * f->m + c), f->row[0].room[c]);
            part.re += term.re;
            part.im += term.im;
        }
        part = complex_product(part, root_of_unity(r * k % f->m, f->m));
        sum.re += part.re;
        sum.im += part.im;
    }
    return sum;
}

/* Relative to the root of the mean square, sqrt(n / 6) for parts in [-1/2, 1/2). */
static double deviation_at(const struct transform *f, int64_t k)
{
    for (int64_t c = 0; c < f->m; c++)
        f->row[0].room[c] = root_of_unity(c * k, f->n);
    number expected = direct_sum(f, k), found = f->from[k];
    return hypot(found.re - expected.re, found.im - expected.im) / sqrt((double)f->n / 6.0);
}

static double worse(double worst, double error)
{
    return error > worst || isnan(error) ? error : worst;
}

static int verify(struct transform *f, int32_t rounds)
{
    if (rounds % 2 == 0)
        run_round(f, -1);
    double direct = 0.0, back = 0.0;
    for (int s = 0; s < SAMPLES; s++)
        direct = worse(direct, deviation_at(f, (int64_t)(noise_bits((uint64_t)s) % (uint64_t)f->n)));
    run_round(f, 1);
    for (int64_t j = 0; j < f->n; j++) {
        number x = point(j);
        back = worse(back, hypot(f->from[j].re - x.re, f->from[j].im - x.im));
    }
    /* A transform adds rounding errors of log2 n stages, the direct sum those of sqrt(n) terms
     * twice. */
    double stages = sqrt(rounds + 2.0) * log2((double)f->n);
    const struct kernel_check checks[] = {
        {"deviation from the direct sum", direct, DBL_EPSILON * (stages + 2.0 * sqrt((double)f->m))},
        {"deviation of the inverse from the input", back, DBL_EPSILON * stages},
    };
    return kernel_verify_checks(checks, 2);
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    if (__builtin_ctzll((unsigned long long)options.size) % 2)
        return kernel_refuse(&about, "--size %lld: not a power of four, so the points form no square",
                             (long long)options.size);
    kernel_start(&about, &options);
    struct transform f = make(&options);
    iterate(&f, &options);
    status = verify(&f, options.iterations);
    for (int t = 0; t < f.threads; t++)
        fourier_free(&f.row[t]);
    free(f.row);
    free(f.from);
    free(f.to);
    free(f.roots);
    return status;
}
