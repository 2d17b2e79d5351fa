/* Conjugate gradients: M. R. Hestenes and E. Stiefel, Journal of Research of the NBS 49 (1952) 409.
 *
 * One parallel region a step; its loops run over rows with one static schedule, so a thread owns
 * the same rows throughout and needs a barrier only before it reads others' sums or their p: three
 * a step.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "solve.h"

#include "report.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

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

static double times_row(const struct matrix *a, int32_t row, const double *restrict in)
{
    double sum = 0.0;
    for (int32_t k = a->row_start[row]; k < a->row_start[row + 1]; k++)
        sum += a->value[k] * in[a->column[k]];
    return sum;
}

/* q = A p; gives the thread's part of p'q. */
static double multiply(const struct solver *s)
{
    double *restrict q = s->q;
    const double *restrict p = s->p;
    double sum = 0.0;
#pragma omp for schedule(static) nowait
    for (int32_t i = 0; i < s->a->n; i++) {
        q[i] = times_row(s->a, i, p);
        sum += p[i] * q[i];
    }
    return sum;
}

/* x += alpha p, r -= alpha q; gives the thread's part of r'r. */
static double advance(const struct solver *s, double alpha)
{
    double *restrict x = s->x, *restrict r = s->r;
    const double *restrict p = s->p, *restrict q = s->q;
    double sum = 0.0;
#pragma omp for schedule(static) nowait
    for (int32_t i = 0; i < s->a->n; i++) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        sum += r[i] * r[i];
    }
    return sum;
}

/* p = r + beta p */
static void turn(const struct solver *s, double beta)
{
    double *restrict p = s->p;
    const double *restrict r = s->r;
#pragma omp for schedule(static)
    for (int32_t i = 0; i < s->a->n; i++)
        p[i] = r[i] + beta * p[i];
}

void solver_step(struct solver *s)
{
    double square = s->square, before = s->square;
    int negative = 0;
#pragma omp parallel
    {
        double curvature = sum_over_threads(s, 0, multiply(s));
        int vanished = before < DBL_MIN / DBL_EPSILON; /* the quotients below would lose their digits */
        double now = sum_over_threads(s, 1, advance(s, vanished ? 0.0 : before / curvature));
        turn(s, vanished ? 0.0 : now / before);
#pragma omp master
        {
            square = now;
            negative = !vanished && !(curvature > 0.0);
        }
    }
    s->square = square;
    s->negative += negative;
}

static void touch(struct solver *s, int serial)
{
#pragma omp parallel for schedule(static) if (!serial)
    for (int32_t i = 0; i < s->a->n; i++) {
        s->x[i] = 0.0;
        s->r[i] = 0.0;
        s->p[i] = 0.0;
        s->q[i] = 0.0;
    }
}

struct solver solver_make(const struct matrix *a, int threads, int serial)
{
    struct solver s = {.a = a, .threads = threads};
    size_t n = (size_t)a->n;
    s.x = kernel_allocate(n, sizeof *s.x, "x");
    s.r = kernel_allocate(n, sizeof *s.r, "r");
    s.p = kernel_allocate(n, sizeof *s.p, "p");
    s.q = kernel_allocate(n, sizeof *s.q, "q");
    s.partials = kernel_allocate(2 * (size_t)threads, sizeof *s.partials, "partial sums");
    touch(&s, serial);
    return s;
}

void solver_free(struct solver *s)
{
    free(s->x);
    free(s->r);
    free(s->p);
    free(s->q);
    free(s->partials);
}

void solver_begin(struct solver *s, const double *right, int serial)
{
#pragma omp parallel for schedule(static) if (!serial)
    for (int32_t i = 0; i < s->a->n; i++) {
        s->x[i] = 0.0;
        s->r[i] = right[i];
        s->p[i] = right[i];
    }
    s->negative = 0;
    s->square = 0.0;
    for (int32_t i = 0; i < s->a->n; i++)
        s->square += right[i] * right[i];
}

double true_residual(const struct solver *s, const double *right)
{
    double error = 0.0, size = 0.0;
    for (int32_t i = 0; i < s->a->n; i++) {
        double left = right[i] - times_row(s->a, i, s->x);
        error += left * left;
        size += right[i] * right[i];
    }
    return sqrt(error / size);
}
