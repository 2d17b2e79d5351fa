/* The wave is followed through half a period on meshes of 4^3, 8^3, 16^3, ... cells, with steps as
 * long as cells are wide, and compared as a vector field, not by its unknowns. The elements are of
 * first order, the scheme of second.
 *
 * On the coarsest mesh the matrix is also factorised (Cholesky): that it can be is the proof that
 * it is positive definite.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "order.h"

#include "elements.h"
#include "matrix.h"
#include "mesh.h"
#include "report.h"
#include "solve.h"

#include <math.h>
#include <stdlib.h>

#define COARSEST_STUDY 4
#define MOST_MESHES 5
#define STEPS_A_CELL 1 /* time steps through half a period = 1 unit of time, by cells an edge */
#define TOLERANCE 1e-10
#define MOST_STEPS 2000
#define LEAST_ORDER 0.9

/* In a dense copy; gives whether all pivots are positive. */
static int is_definite(const struct matrix *a)
{
    size_t n = (size_t)a->n;
    int definite = 1;
    double *l = kernel_allocate(n * n, sizeof *l, "a dense copy");
    for (size_t i = 0; i < n * n; i++)
        l[i] = 0.0;
    for (size_t i = 0; i < n; i++)
        for (int32_t k = a->row_start[i]; k < a->row_start[i + 1]; k++)
            l[i * n + (size_t)a->column[k]] = a->value[k];
    for (size_t i = 0; definite && i < n; i++)
        for (size_t j = 0; definite && j <= i; j++) {
            double sum = l[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            definite = i != j || sum > 0.0;
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    free(l);
    return definite;
}

/* All edges' circulations, three times, to be turned round. */
struct history {
    double *before, *now, *next;
};

static void set_unknowns(const struct mesh *m, const double *x, double *field)
{
    for (int32_t e = 0; e < m->edges; e++)
        if (m->unknown[e] >= 0)
            field[e] = x[m->unknown[e]];
}

/* Gives whether conjugate gradients came to the end with p'Ap > 0 throughout. */
static int solve(struct solver *s, const double *right)
{
    solver_begin(s, right, 0);
    double start = s->square;
    for (int step = 0; step < MOST_STEPS && s->square > TOLERANCE * TOLERANCE * start; step++)
        solver_step(s);
    return !s->negative && s->square <= TOLERANCE * TOLERANCE * start;
}

static int follow_wave(const struct mesh *m, struct solver *s, int steps, double step, struct history *h)
{
    int right = 1;
    double *rhs = kernel_allocate((size_t)m->unknowns, sizeof *rhs, "the right-hand side");
    wave_on_edges(m, -step, h->before);
    wave_on_edges(m, 0.0, h->now);
    for (int k = 1; k <= steps && right; k++) {
        wave_on_edges(m, k * step, h->next);
        right_hand_side(m, 0.25 * step * step, h->before, h->now, h->next, rhs);
        right = solve(s, rhs);
        set_unknowns(m, s->x, h->next);
        double *oldest = h->before;
        h->before = h->now;
        h->now = h->next;
        h->next = oldest;
    }
    free(rhs);
    return right;
}

static struct kernel_order_row study(int32_t cells, const struct kernel_options *options)
{
    int steps = STEPS_A_CELL * cells;
    double step = 1.0 / steps;
    struct mesh m = mesh_make(cells);
    struct matrix a = assemble(&m, 0.25 * step * step);
    struct solver s = solver_make(&a, options->threads, options->serial_init);
    struct history h = {kernel_allocate((size_t)m.edges, sizeof(double), "fields"),
                        kernel_allocate((size_t)m.edges, sizeof(double), "fields"),
                        kernel_allocate((size_t)m.edges, sizeof(double), "fields")};
    struct kernel_order_row row = {cells, steps, NAN};
    if ((cells > COARSEST_STUDY || is_definite(&a)) && follow_wave(&m, &s, steps, step, &h))
        row.error = field_error(&m, 1.0, h.now);
    free(h.before);
    free(h.now);
    free(h.next);
    solver_free(&s);
    matrix_free(&a);
    mesh_free(&m);
    return row;
}

int verify_order(const struct kernel_options *options)
{
    struct kernel_order_row rows[MOST_MESHES];
    int count = 0;
    for (int32_t cells = COARSEST_STUDY; cells <= options->size && count < MOST_MESHES; cells *= 2)
        rows[count++] = study(cells, options);
    return kernel_verify_order("cells an edge", "time steps", "relative field error", rows, count, LEAST_ORDER);
}
