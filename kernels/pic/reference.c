/* The same motion, serially and as plainly as can be: particles in the order of their numbers,
 * whole grids.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "fourier.h"
#include "plasma.h"
#include "report.h"

#include <stdlib.h>

struct grid {
    int64_t m;
    struct complex_number *value; /* real part: electrons in a cell, then the potential */
};

static double *real_at(const struct grid *g, int64_t i, int64_t j)
{
    return &g->value[(j & (g->m - 1)) * g->m + (i & (g->m - 1))].re; /* m is a power of two */
}

static void spread(const struct grid *g, const struct particle *p)
{
    int64_t i = (int64_t)p->x, j = (int64_t)p->y;
    double u = p->x - (double)i, v = p->y - (double)j;
    *real_at(g, i, j) += (1.0 - u) * (1.0 - v);
    *real_at(g, i + 1, j) += u * (1.0 - v);
    *real_at(g, i, j + 1) += (1.0 - u) * v;
    *real_at(g, i + 1, j + 1) += u * v;
}

static void transform_rows(const struct grid *g, const struct fourier *f, int sign)
{
    for (int64_t j = 0; j < g->m; j++)
        fourier_row(f, g->value + j * g->m, sign);
}

static void transpose(const struct grid *g)
{
    for (int64_t j = 0; j < g->m; j++)
        for (int64_t i = 0; i < j; i++) {
            struct complex_number *a = &g->value[j * g->m + i], *b = &g->value[i * g->m + j], swap = *a;
            *a = *b;
            *b = swap;
        }
}

/* The grid is square and the factors are symmetric, so it may stay transposed between the two
 * transforms. */
static void solve(const struct grid *g, const struct fourier *f)
{
    transform_rows(g, f, -1);
    transpose(g);
    transform_rows(g, f, -1);
    for (int64_t j = 0; j < g->m; j++)
        for (int64_t i = 0; i < g->m; i++) {
            double stiffness = plasma_stiffness(g->m, i) + plasma_stiffness(g->m, j);
            double factor = i + j ? -CHARGE / (stiffness * (double)g->m * (double)g->m) : 0.0;
            g->value[j * g->m + i].re *= factor;
            g->value[j * g->m + i].im *= factor;
        }
    transform_rows(g, f, 1);
    transpose(g);
    transform_rows(g, f, 1);
}

static void accelerate(const struct grid *g, struct particle *p)
{
    int64_t i = (int64_t)p->x, j = (int64_t)p->y, m = g->m;
    double u = p->x - (double)i, v = p->y - (double)j;
    for (int64_t corner = 0; corner < 4; corner++) {
        int64_t a = i + corner % 2, b = j + corner / 2;
        double weight = (corner % 2 ? u : 1.0 - u) * (corner / 2 ? v : 1.0 - v);
        p->vx += weight * 0.5 * (*real_at(g, a + 1, b) - *real_at(g, a + m - 1, b));
        p->vy += weight * 0.5 * (*real_at(g, a, b + 1) - *real_at(g, a, b + m - 1));
    }
}

static void one_round(const struct grid *g, const struct fourier *f, struct particle *particles, int64_t count)
{
    for (int64_t k = 0; k < g->m * g->m; k++)
        g->value[k] = (struct complex_number){0.0, 0.0};
    for (int64_t k = 0; k < count; k++)
        spread(g, &particles[k]);
    solve(g, f);
    for (int64_t k = 0; k < count; k++) {
        struct particle *p = &particles[k];
        accelerate(g, p);
        p->x = plasma_wrap(p->x + p->vx, (double)g->m);
        p->y = plasma_wrap(p->y + p->vy, (double)g->m);
    }
}

struct particle *plasma_reference(int64_t m, int32_t rounds)
{
    int64_t count = m * m * PARTICLES_A_CELL;
    struct particle *particles = kernel_allocate((size_t)count, sizeof *particles, "the reference's particles");
    struct grid g = {.m = m, .value = kernel_allocate((size_t)(m * m), sizeof *g.value, "the reference's grid")};
    struct fourier f = fourier_make(m);
    for (int64_t i = 0; i < count; i++)
        particles[i] = plasma_start(m, i);
    for (int32_t k = 0; k < rounds; k++)
        one_round(&g, &f, particles, count);
    fourier_free(&f);
    free(g.value);
    return particles;
}
