/* Edge elements: J.-C. Nedelec, Mixed finite elements in R^3, Numerische Mathematik 35 (1980) 315;
 * on the edge from node i to node j the function is l_i grad l_j - l_j grad l_i (Whitney), with l
 * the barycentric coordinates. Products of two of these integrate to volume (1 + [i = j]) / 20.
 *
 * Maxwell's equations in vacuum, d^2 E / dt^2 + curl curl E = 0, light's speed 1. In time the
 * implicit scheme of second order that is stable for any step (Newmark, 1959, with beta = 1/4; F.
 * Edelvik uses it for the unstructured part of his hybrid solvers, thesis, Uppsala 2002):
 *
 *     (M + w K) E_next = 2 (M - w K) E_now - (M + w K) E_before,    w = step^2 / 4.
 *
 * A plane wave is a solution; it is imposed on the outer side of the box and on the body (as an
 * incident wave is), and the solution in between is compared with it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "elements.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define STEP 0.8 /* cells that light crosses in a step */

static const double wave_vector[3] = {2.0 / 3.0 * PI, 1.0 / 3.0 * PI, 2.0 / 3.0 * PI}; /* length pi: two cubes a wave */
static const double polarisation[3] = {0.25, -1.0, 0.25};                             /* across it */

double time_step(int32_t cells)
{
    return STEP / cells;
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* The integral of cos along a straight line is exact: cos(middle) sin(half) / half. */
void wave_on_edges(const struct mesh *m, double time, double *field)
{
    for (int32_t e = 0; e < m->edges; e++) {
        const double *a = m->point[m->edge[e][0]], *b = m->point[m->edge[e][1]];
        double along[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
        double half = 0.5 * dot(wave_vector, along), middle = dot(wave_vector, a) + half - PI * time;
        double mean = fabs(half) < 1e-9 ? 1.0 : sin(half) / half;
        field[e] = dot(polarisation, along) * cos(middle) * mean;
    }
}

struct tetrahedron {
    double volume, gradient[TET_NODES][3];
};

static void cross(const double a[3], const double b[3], double out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
}

static struct tetrahedron tetrahedron_of(const struct mesh *m, int32_t t)
{
    struct tetrahedron out;
    double side[3][3];
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < 3; d++)
            side[s][d] = m->point[m->tet[t][s + 1]][d] - m->point[m->tet[t][0]][d];
    for (int s = 0; s < 3; s++)
        cross(side[(s + 1) % 3], side[(s + 2) % 3], out.gradient[s + 1]);
    double six = dot(side[0], out.gradient[1]);
    for (int d = 0; d < 3; d++) {
        for (int s = 1; s < TET_NODES; s++)
            out.gradient[s][d] /= six;
        out.gradient[0][d] = -out.gradient[1][d] - out.gradient[2][d] - out.gradient[3][d];
    }
    out.volume = fabs(six) / 6.0;
    return out;
}

/* Integrals over a tetrahedron for two of its edges, the smaller first: so they are the same from
 * both rows to the bit. */
static void integrals(const struct tetrahedron *t, int e, int f, double *mass, double *stiffness)
{
    const int *p = edge_nodes[e < f ? e : f], *q = edge_nodes[e < f ? f : e];
    const double(*g)[3] = t->gradient;
    double curl_p[3], curl_q[3];
    cross(g[p[0]], g[p[1]], curl_p);
    cross(g[q[0]], g[q[1]], curl_q);
    *stiffness = 4.0 * t->volume * dot(curl_p, curl_q);
    *mass = t->volume / 20.0 *
            ((1 + (p[0] == q[0])) * dot(g[p[1]], g[q[1]]) - (1 + (p[0] == q[1])) * dot(g[p[1]], g[q[0]]) -
             (1 + (p[1] == q[0])) * dot(g[p[0]], g[q[1]]) + (1 + (p[1] == q[1])) * dot(g[p[0]], g[q[0]]));
}

static int local_edge(const struct mesh *m, int32_t tet, int32_t edge)
{
    int e = 0;
    while (m->tet_edge[tet][e] != edge)
        e++;
    return e;
}

/* Each visit: an edge, another edge of a tetrahedron that both have, and the integrals there. */
typedef void visitor(void *context, int32_t other, double mass, double stiffness);

static void visit_row(const struct mesh *m, int32_t edge, visitor *visit, void *context)
{
    for (int32_t u = m->edge_start[edge]; u < m->edge_start[edge + 1]; u++) {
        int32_t tet = m->edge_tet[u];
        struct tetrahedron t = tetrahedron_of(m, tet);
        int own = local_edge(m, tet, edge);
        for (int f = 0; f < TET_EDGES; f++) {
            double mass, stiffness;
            integrals(&t, own, f, &mass, &stiffness);
            visit(context, m->tet_edge[tet][f], mass, stiffness);
        }
    }
}

struct row {
    const struct mesh *m;
    double weight;
    int32_t number, count;
    int32_t *last_row; /* which row last had an entry in a column */
    double *sum;
    int32_t *column;
};

static void add_entry(void *context, int32_t other, double mass, double stiffness)
{
    struct row *r = context;
    int32_t column = r->m->unknown[other];
    if (column < 0)
        return;
    if (r->last_row[column] != r->number) {
        r->last_row[column] = r->number;
        r->sum[column] = 0.0;
        r->column[r->count++] = column;
    }
    r->sum[column] += mass + r->weight * stiffness;
}

static void sort(int32_t *a, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        int32_t wanted = a[i], k = i;
        for (; k > 0 && a[k - 1] > wanted; k--)
            a[k] = a[k - 1];
        a[k] = wanted;
    }
}

/* An inner edge with c tetrahedra has 1 + 3 c entries, fewer where neighbours lie on a surface. */
static size_t most_entries(const struct mesh *m)
{
    size_t sum = 0;
    for (int32_t e = 0; e < m->edges; e++)
        if (m->unknown[e] >= 0)
            sum += 1 + 3 * (size_t)(m->edge_start[e + 1] - m->edge_start[e]);
    return sum;
}

struct matrix assemble(const struct mesh *m, double weight)
{
    size_t n = (size_t)m->unknowns, most = most_entries(m);
    struct matrix a = {.n = m->unknowns};
    a.row_start = kernel_allocate(n + 1, sizeof *a.row_start, "row starts");
    a.column = kernel_allocate(most, sizeof *a.column, "columns");
    a.value = kernel_allocate(most, sizeof *a.value, "values");
    struct row r = {.m = m, .weight = weight};
    r.last_row = kernel_allocate(n, sizeof *r.last_row, "a row's places");
    r.sum = kernel_allocate(n, sizeof *r.sum, "a row");
    for (size_t i = 0; i < n; i++)
        r.last_row[i] = -1;
    for (int32_t e = 0; e < m->edges; e++) {
        if (m->unknown[e] < 0)
            continue;
        r.number = m->unknown[e];
        r.count = 0;
        r.column = a.column + a.entries;
        a.row_start[r.number] = a.entries;
        visit_row(m, e, add_entry, &r);
        sort(r.column, r.count);
        for (int32_t k = 0; k < r.count; k++)
            a.value[a.entries++] = r.sum[r.column[k]];
    }
    a.row_start[n] = a.entries;
    free(r.last_row);
    free(r.sum);
    return a;
}

struct right {
    const struct mesh *m;
    const double *before, *now, *next;
    double weight, sum;
};

static void add_right(void *context, int32_t other, double mass, double stiffness)
{
    struct right *r = context;
    double operator = mass + r->weight * stiffness;
    r->sum += 2.0 * (mass - r->weight * stiffness) * r->now[other] - operator * r->before[other];
    if (r->m->unknown[other] < 0)
        r->sum -= operator * r->next[other];
}

void right_hand_side(const struct mesh *m, double weight, const double *before, const double *now, const double *next,
                     double *out)
{
    for (int32_t e = 0; e < m->edges; e++) {
        struct right r = {.m = m, .before = before, .now = now, .next = next, .weight = weight};
        if (m->unknown[e] < 0)
            continue;
        visit_row(m, e, add_right, &r);
        out[m->unknown[e]] = r.sum;
    }
}

/* The field in a tetrahedron, at barycentric coordinates. */
static void field_at(const struct mesh *m, int32_t tet, const struct tetrahedron *t, const double *field,
                     const double l[TET_NODES], double out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = 0.0;
    for (int e = 0; e < TET_EDGES; e++) {
        int i = edge_nodes[e][0], j = edge_nodes[e][1];
        for (int d = 0; d < 3; d++)
            out[d] += field[m->tet_edge[tet][e]] * (l[i] * t->gradient[j][d] - l[j] * t->gradient[i][d]);
    }
}

/* Four points, exact for polynomials of degree 2 (P. C. Hammer and A. H. Stroud, 1956). */
static void add_errors(const struct mesh *m, int32_t tet, double time, const double *field, double *error, double *size)
{
    const double near = 0.5854101966249685, far = 0.1381966011250105;
    struct tetrahedron t = tetrahedron_of(m, tet);
    for (int p = 0; p < TET_NODES; p++) {
        double l[TET_NODES] = {far, far, far, far}, at[3] = {0.0}, there[3];
        l[p] = near;
        for (int c = 0; c < TET_NODES; c++)
            for (int d = 0; d < 3; d++)
                at[d] += l[c] * m->point[m->tet[tet][c]][d];
        field_at(m, tet, &t, field, l, there);
        double wave = cos(dot(wave_vector, at) - PI * time);
        for (int d = 0; d < 3; d++) {
            double exact = polarisation[d] * wave;
            *error += 0.25 * t.volume * (there[d] - exact) * (there[d] - exact);
            *size += 0.25 * t.volume * exact * exact;
        }
    }
}

double field_error(const struct mesh *m, double time, const double *field)
{
    double error = 0.0, size = 0.0;
    for (int32_t t = 0; t < m->tets; t++)
        add_errors(m, t, time, field, &error, &size);
    return sqrt(error / size);
}
