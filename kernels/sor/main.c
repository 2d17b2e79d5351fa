/* sor: Laplace's equation on a square by successive over-relaxation, red points first, then black.
 *
 * J. Tao, M. Schulz and W. Karl (Improving data locality using an adaptive runtime system) use a
 * 200 x 200 grid. The border and the solution are x^2 - y^2, which the five-point stencil
 * reproduces exactly.
 *
 * Verified in closed form after any number of sweeps (D. Young's theory of SOR): let s = sqrt(omega
 * - 1) with the optimal omega = 2 / (1 + sin(pi h)). The half sine wave, its black points scaled by
 * s, is an eigenvector of the red-black sweep with eigenvalue omega - 1. The start is the solution
 * plus this vector, so the error after k sweeps is (omega - 1)^k times this vector.
 *
 * Placement. `--init parallel`: each thread starts the rows that it relaxes; `serial`: the initial
 * thread starts all. One array, written in place; threads share pages and lines at the seams only.
 * `--single`: numbers of 4 bytes, which take half the pages.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "homenode.h"
#include "options.h"
#include "report.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

static double bytes(int64_t size, int letter)
{
    (void)letter;
    return (double)sizeof(double) * (double)(size + 2) * (double)(size + 2);
}

static const struct kernel_about about = {
    .name = "sor",
    .summary = "red-black over-relaxation for Laplace's equation",
    .size_meaning = "inner points an edge",
    .classes_from = "points an edge (W as in Tao, Schulz and Karl)",
    .example = "sor --size 200 --iterations 100 --threads 4 --init serial",
    .classes = {{'S', 64, 50}, {'W', 200, 100}, {'A', 1000, 100}, {'B', 4000, 100}},
    .default_class = 'W',
    .least_size = 2,
    .most_size = 100000,
    .extras = EXTRA_SINGLE,
    .bytes = bytes,
};

struct grid {
    int64_t n, width; /* width = n + 2: with the border */
    double omega;
    int single; /* which of the two has the points */
    double *u;
    float *f;
};

static double solution(const struct grid *g, int64_t i, int64_t j)
{
    double h = 1.0 / (double)(g->n + 1), x = h * (double)i, y = h * (double)j;
    return x * x - y * y;
}

static double start_error(const struct grid *g, int64_t i, int64_t j)
{
    double h = PI / (double)(g->n + 1);
    double wave = sin(h * (double)i) * sin(h * (double)j);
    return (i + j) % 2 ? wave * sqrt(g->omega - 1.0) : wave;
}

static void start_row(struct grid *g, int64_t i)
{
    int border_row = i == 0 || i == g->n + 1;
    for (int64_t j = 0; j < g->width; j++) {
        int border = border_row || j == 0 || j == g->n + 1;
        double start = solution(g, i, j) + (border ? 0.0 : start_error(g, i, j));
        if (g->single)
            g->f[i * g->width + j] = (float)start;
        else
            g->u[i * g->width + j] = start;
    }
}

/* The border rows go with their neighbours, so that the schedule is that of the sweep. */
static struct grid make(int64_t n, int serial, int single)
{
    struct grid g = {.n = n, .width = n + 2, .single = single};
    size_t points = (size_t)(g.width * g.width);
    g.omega = 2.0 / (1.0 + sin(PI / (double)(n + 1)));
    if (single)
        g.f = kernel_allocate(points, sizeof *g.f, "the grid");
    else
        g.u = kernel_allocate(points, sizeof *g.u, "the grid");
#pragma omp parallel for schedule(static) if (!serial)
    for (int64_t i = 1; i <= n; i++) {
        if (i == 1)
            start_row(&g, 0);
        start_row(&g, i);
        if (i == n)
            start_row(&g, n + 1);
    }
    return g;
}

static void relax_row(const struct grid *g, int64_t i, int64_t first)
{
    int64_t n = g->n, w = g->width;
    double keep = 1.0 - g->omega, pull = 0.25 * g->omega;
    if (g->single) {
        float *row = g->f + i * w, keeps = (float)keep, pulls = (float)pull;
        for (int64_t j = first; j <= n; j += 2)
            row[j] = keeps * row[j] + pulls * (row[j - w] + row[j + w] + row[j - 1] + row[j + 1]);
        return;
    }
    double *row = g->u + i * w;
    for (int64_t j = first; j <= n; j += 2)
        row[j] = keep * row[j] + pull * (row[j - w] + row[j + w] + row[j - 1] + row[j + 1]);
}

/* Points with even i + j are red. A red point has black neighbours only, so no two threads meet
 * within a colour. */
static void sweep(const struct grid *g)
{
#pragma omp parallel
    for (int64_t colour = 0; colour < 2; colour++) {
#pragma omp for schedule(static)
        for (int64_t i = 1; i <= g->n; i++)
            relax_row(g, i, 1 + (i + 1 + colour) % 2);
    }
}

static int next_touch(const struct grid *g)
{
    size_t points = (size_t)(g->width * g->width);
    return g->single ? hn_next_touch(g->f, points * sizeof *g->f) : hn_next_touch(g->u, points * sizeof *g->u);
}

static void iterate(const struct grid *g, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            kernel_note_next_touch(next_touch(g));
        sweep(g);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

/* The optimal omega makes the eigenvalue double: a sweep's rounding error grows k-fold before it
 * decays, which adds up to 1 / (2 - omega)^2, or to the number of sweeps squared when there are
 * fewer. */
static double allowed(const struct grid *g, int32_t iterations)
{
    double sweeps = fmin(iterations + 1.0, 1.0 / (2.0 - g->omega));
    return 16.0 * (g->single ? (double)FLT_EPSILON : DBL_EPSILON) * sweeps * sweeps;
}

static int verify(const struct grid *g, int32_t iterations)
{
    double left = pow(g->omega - 1.0, iterations), worst = 0.0;
    for (int64_t i = 1; i <= g->n; i++)
        for (int64_t j = 1; j <= g->n; j++) {
            double expected = solution(g, i, j) + left * start_error(g, i, j);
            int64_t at = i * g->width + j;
            double error = fabs((g->single ? (double)g->f[at] : g->u[at]) - expected);
            worst = error > worst || isnan(error) ? error : worst;
        }
    return kernel_verify_bound("largest deviation from the exact iterate", worst, allowed(g, iterations));
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct grid g = make(options.size, options.serial_init, options.single);
    iterate(&g, &options);
    status = verify(&g, options.iterations);
    free(g.u);
    free(g.f);
    return status;
}
