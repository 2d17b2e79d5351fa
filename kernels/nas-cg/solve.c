/* Inverse power iteration with conjugate gradients. Source: The NAS Parallel Benchmarks,
 * RNR-94-007.
 *
 * All loops run over rows with one static schedule inside one parallel region a round, so a thread
 * owns the same rows throughout, and needs a barrier only before it reads others' p or sums: three
 * a step.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "solve.h"

#include "report.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#define STEPS 25

/* Sum over all threads. `slot` alternates between consecutive sums: a slot is written again only
 * after the barrier of the other one, when everybody has read it. */
static double sum_over_threads(const struct solver *s, int slot, double mine)
{
    struct partial *partials = s->partials + (size_t)slot * (size_t)s->threads;
    double sum = 0.0;
    partials[omp_get_thread_num()].value = mine;
#pragma omp barrier
    for (int t = 0; t < omp_get_num_threads(); t++)
        sum += partials[t].value;
    return sum;
}

/* out = A in, for the thread's rows. */
static void multiply(const struct matrix *a, const double *restrict in, double *restrict out)
{
    const int32_t *restrict start = a->row_start, *restrict column = a->column;
    const double *restrict value = a->value;
#pragma omp for schedule(static) nowait
    for (int32_t i = 0; i < a->n; i++) {
        double sum = 0.0;
        for (int32_t k = start[i]; k < start[i + 1]; k++)
            sum += value[k] * in[column[k]];
        out[i] = sum;
    }
}

/* The thread's part of a'b. */
static double dot(int32_t n, const double *a, const double *b)
{
    double sum = 0.0;
#pragma omp for schedule(static) nowait
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* q = 0, z = 0, r = p = x; gives the thread's part of r'r. */
static double begin(const struct solver *s)
{
    double *restrict z = s->z, *restrict p = s->p, *restrict q = s->q, *restrict r = s->r;
    const double *restrict x = s->x;
    double sum = 0.0;
#pragma omp for schedule(static) nowait
    for (int32_t i = 0; i < s->a.n; i++) {
        q[i] = 0.0;
        z[i] = 0.0;
        r[i] = x[i];
        p[i] = x[i];
        sum += x[i] * x[i];
    }
    return sum;
}

/* z += alpha p, r -= alpha q; gives the thread's part of r'r. */
static double advance(const struct solver *s, double alpha)
{
    double *restrict z = s->z, *restrict r = s->r;
    const double *restrict p = s->p, *restrict q = s->q;
    double sum = 0.0;
#pragma omp for schedule(static) nowait
    for (int32_t i = 0; i < s->a.n; i++) {
        z[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        sum += r[i] * r[i];
    }
    return sum;
}

/* p = r + beta p. */
static void turn(const struct solver *s, double beta)
{
    double *restrict p = s->p;
    const double *restrict r = s->r;
#pragma omp for schedule(static)
    for (int32_t i = 0; i < s->a.n; i++)
        p[i] = r[i] + beta * p[i];
}

static void conjugate_gradients(const struct solver *s)
{
    double rho = sum_over_threads(s, 0, begin(s));
    for (int step = 0; step < STEPS; step++) {
        multiply(&s->a, s->p, s->q);
        double alpha = rho / sum_over_threads(s, 1, dot(s->a.n, s->p, s->q));
        double before = rho;
        rho = sum_over_threads(s, 0, advance(s, alpha));
        turn(s, rho / before);
    }
}

/* |x - A z|, with r = A z as the benchmark has it. The barrier of the last `turn` has made z
 * complete. */
static double residual_norm(const struct solver *s)
{
    double sum = 0.0;
    multiply(&s->a, s->z, s->r);
#pragma omp for schedule(static) nowait
    for (int32_t i = 0; i < s->a.n; i++)
        sum += (s->x[i] - s->r[i]) * (s->x[i] - s->r[i]);
    return sqrt(sum_over_threads(s, 1, sum));
}

static void normalise(const struct solver *s, double length)
{
    double inverse = 1.0 / length;
#pragma omp for schedule(static)
    for (int32_t i = 0; i < s->a.n; i++)
        s->x[i] = inverse * s->z[i];
}

double solver_round(struct solver *s, double *residual)
{
    double product = 0.0, distance = 0.0;
#pragma omp parallel
    {
        conjugate_gradients(s);
        double norm = residual_norm(s);
        double xz = sum_over_threads(s, 0, dot(s->a.n, s->x, s->z));
        double zz = sum_over_threads(s, 1, dot(s->a.n, s->z, s->z));
        normalise(s, sqrt(zz));
#pragma omp master
        {
            product = xz;
            distance = norm;
        }
    }
    *residual = distance;
    return product;
}

static void touch(struct solver *s, int32_t n, int serial)
{
#pragma omp parallel for schedule(static) if (!serial)
    for (int32_t i = 0; i < n; i++) {
        s->x[i] = 1.0;
        s->z[i] = 0.0;
        s->p[i] = 0.0;
        s->q[i] = 0.0;
        s->r[i] = 0.0;
    }
}

void solver_reset(struct solver *s, int serial)
{
#pragma omp parallel for schedule(static) if (!serial)
    for (int32_t i = 0; i < s->a.n; i++)
        s->x[i] = 1.0;
}

static void allocate(struct solver *s, size_t n)
{
    s->x = kernel_allocate(n, sizeof *s->x, "x");
    s->z = kernel_allocate(n, sizeof *s->z, "z");
    s->p = kernel_allocate(n, sizeof *s->p, "p");
    s->q = kernel_allocate(n, sizeof *s->q, "q");
    s->r = kernel_allocate(n, sizeof *s->r, "r");
    s->partials = kernel_allocate(2 * (size_t)s->threads, sizeof *s->partials, "partial sums");
}

/* The vectors come before the matrix: after its building, malloc would hand out pages of the freed
 * work space again, which the initial thread has touched. */
struct solver solver_make(int32_t n, int32_t nonzeros, double shift, const struct kernel_options *options)
{
    struct solver s = {.threads = options->threads};
    allocate(&s, (size_t)n);
    touch(&s, n, options->serial_init);
    enum matrix_builder builder = options->serial_init ? BUILT_BY_INITIAL_THREAD
                                  : options->npb_init  ? BUILT_AS_NPB
                                                       : BUILT_BY_ROW_OWNERS;
    s.a = matrix_build(n, nonzeros, shift, builder);
    return s;
}

void solver_free(struct solver *s)
{
    free(s->a.row_start);
    free(s->a.column);
    free(s->a.value);
    free(s->x);
    free(s->z);
    free(s->p);
    free(s->q);
    free(s->r);
    free(s->partials);
}
