/* pic: electrons that drift through a periodic square and repel each other, by particle-in-cell.
 *
 * The physics and its source are in plasma.h. A round: sort the particles' numbers by row of cells;
 * each thread owns neighbouring rows and works on the particles that are in them now: it adds their
 * charge to the grid, all solve for the potential by Fourier transforms, and it pushes its
 * particles. Charge that falls on the next thread's first row goes through a row of one's own,
 * added in a fixed order; so a number of threads always gives the same result.
 *
 * Verified against a serial program (reference.c), by Gauss's law on the grid, and by the momentum
 * of all particles.
 *
 * Placement. Particles lie in memory in the order in which they start, sorted by rows; they drift a
 * quarter of a row each round, so which thread uses a page of particles changes slowly: a placement
 * is right for a while. Grid rows are private but for their edges and the column transforms.
 * `--init parallel`: a row and the particles in it are made by its owner.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "fourier.h"
#include "homenode.h"
#include "options.h"
#include "places.h"
#include "plasma.h"
#include "report.h"
#include "share.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

/* Of the program and its reference. */
static double bytes(int64_t size, int letter)
{
    double particle = 2.0 * sizeof(struct particle) + 2.0 * sizeof(int32_t);
    double cell = PARTICLES_A_CELL * particle + 3.0 * sizeof(double) + 2.0 * sizeof(struct complex_number);
    (void)letter;
    return cell * (double)size * (double)size;
}

static const struct kernel_about about = {
    .name = "pic",
    .summary = "particle-in-cell, drifting electrons in two dimensions",
    .size_meaning = "cells an edge, a power of two; 32 particles a cell",
    .classes_from = "cells an edge",
    .example = "pic --size 128 --iterations 100 --threads 4",
    .classes = {{'S', 32, 20}, {'W', 128, 20}, {'A', 256, 40}, {'B', 1024, 40}},
    .default_class = 'A',
    .least_size = 4,
    .most_size = 4096,
    .power_of_two = 1,
    .bytes = bytes,
};

struct vector {
    double x, y;
};

struct plasma {
    int64_t m, count;
    int threads;
    struct particle *particle;
    int32_t *row_of;                  /* of each particle */
    int32_t *order;                   /* particles' numbers by rows */
    struct places rows;               /* the sort that makes `order` */
    double *electrons;                /* in each cell */
    struct complex_number *potential; /* and what it is made from */
    struct vector *push;              /* acceleration at each grid point */
    double *stiffness;                /* by wave number */
    double **edge;                    /* [thread]: what falls on the row after its last */
    struct fourier *fourier;          /* [thread] */
    struct complex_number **column;   /* [thread]: room for one */
};

static int64_t after(int64_t m, int64_t i)
{
    return i + 1 < m ? i + 1 : 0;
}

static int64_t before(int64_t m, int64_t i)
{
    return i > 0 ? i - 1 : m - 1;
}

static void count_rows(const struct plasma *p, int me)
{
    struct share mine = share_of(p->count, p->threads, me);
    int32_t *count = places_begin(&p->rows, me);
    for (int64_t i = mine.first; i < mine.end; i++)
        count[p->row_of[i]]++;
}

/* Ends with a barrier. */
static void sort_by_rows(const struct plasma *p, int me)
{
    struct share mine = share_of(p->count, p->threads, me);
    int32_t *next = p->rows.count + (int64_t)me * p->rows.apart;
    count_rows(p, me);
    places_find(&p->rows, me);
    for (int64_t i = mine.first; i < mine.end; i++)
        p->order[next[p->row_of[i]]++] = (int32_t)i;
#pragma omp barrier
}

/* The four weights of a particle at its cell's corners: (0,0), (1,0), (0,1), (1,1). */
static void weigh(const struct particle *q, int64_t i, int64_t j, double *weight)
{
    double u = q->x - (double)i, v = q->y - (double)j;
    weight[0] = (1.0 - u) * (1.0 - v);
    weight[1] = u * (1.0 - v);
    weight[2] = (1.0 - u) * v;
    weight[3] = u * v;
}

static void spread_row(const struct plasma *p, int64_t j, double *row, double *next_row)
{
    for (int32_t k = places_end(&p->rows, j - 1); k < places_end(&p->rows, j); k++) {
        const struct particle *q = &p->particle[p->order[k]];
        int64_t i = (int64_t)q->x, right = after(p->m, i);
        double weight[4];
        weigh(q, i, j, weight);
        row[i] += weight[0];
        row[right] += weight[1];
        next_row[i] += weight[2];
        next_row[right] += weight[3];
    }
}

/* Ends with a barrier. */
static void spread(const struct plasma *p, struct share mine, int me)
{
    for (int64_t k = mine.first * p->m; k < mine.end * p->m; k++)
        p->electrons[k] = 0.0;
    for (int64_t i = 0; i < p->m; i++)
        p->edge[me][i] = 0.0;
    for (int64_t j = mine.first; j < mine.end; j++)
        spread_row(p, j, p->electrons + j * p->m, j + 1 < mine.end ? p->electrons + (j + 1) * p->m : p->edge[me]);
#pragma omp barrier
}

/* What the thread before has put aside for the first own row. Threads without rows have put nothing
 * aside. */
static void add_edge(const struct plasma *p, struct share mine)
{
    if (mine.first == mine.end)
        return;
    for (int t = 0; t < p->threads; t++) {
        struct share theirs = share_of(p->m, p->threads, t);
        if (theirs.first == theirs.end || theirs.end % p->m != mine.first)
            continue;
        for (int64_t i = 0; i < p->m; i++)
            p->electrons[mine.first * p->m + i] += p->edge[t][i];
    }
}

static void transform_rows(const struct plasma *p, struct share mine, int me, int sign)
{
    for (int64_t j = mine.first; j < mine.end; j++)
        fourier_row(&p->fourier[me], p->potential + j * p->m, sign);
}

/* One column there, through the Laplacian's inverse, and back. */
static void solve_column(const struct plasma *p, int64_t i, int me)
{
    struct complex_number *column = p->column[me];
    int64_t m = p->m;
    for (int64_t j = 0; j < m; j++)
        column[j] = p->potential[j * m + i];
    fourier_row(&p->fourier[me], column, -1);
    for (int64_t j = 0; j < m; j++) {
        double factor = i + j ? -CHARGE / ((p->stiffness[i] + p->stiffness[j]) * (double)m * (double)m) : 0.0;
        column[j].re *= factor;
        column[j].im *= factor;
    }
    fourier_row(&p->fourier[me], column, 1);
    for (int64_t j = 0; j < m; j++)
        p->potential[j * m + i] = column[j];
}

/* Ends with a barrier: all rows of the potential are there. */
static void solve(const struct plasma *p, struct share mine, int me)
{
    for (int64_t k = mine.first * p->m; k < mine.end * p->m; k++)
        p->potential[k] = (struct complex_number){p->electrons[k], 0.0};
    transform_rows(p, mine, me, -1);
#pragma omp barrier
    for (int64_t i = mine.first; i < mine.end; i++)
        solve_column(p, i, me);
#pragma omp barrier
    transform_rows(p, mine, me, 1);
#pragma omp barrier
}

/* Ends with a barrier: particles of the last own row need the next thread's first. */
static void differentiate(const struct plasma *p, struct share mine)
{
    int64_t m = p->m;
    const struct complex_number *potential = p->potential;
    for (int64_t j = mine.first; j < mine.end; j++)
        for (int64_t i = 0; i < m; i++) {
            p->push[j * m + i].x = 0.5 * (potential[j * m + after(m, i)].re - potential[j * m + before(m, i)].re);
            p->push[j * m + i].y = 0.5 * (potential[after(m, j) * m + i].re - potential[before(m, j) * m + i].re);
        }
#pragma omp barrier
}

static void push_row(const struct plasma *p, int64_t j)
{
    int64_t m = p->m;
    const struct vector *row = p->push + j * m, *next_row = p->push + after(m, j) * m;
    for (int32_t k = places_end(&p->rows, j - 1); k < places_end(&p->rows, j); k++) {
        int32_t number = p->order[k];
        struct particle *q = &p->particle[number];
        int64_t i = (int64_t)q->x, right = after(m, i);
        double weight[4];
        weigh(q, i, j, weight);
        q->vx += weight[0] * row[i].x + weight[1] * row[right].x + weight[2] * next_row[i].x +
                 weight[3] * next_row[right].x;
        q->vy += weight[0] * row[i].y + weight[1] * row[right].y + weight[2] * next_row[i].y +
                 weight[3] * next_row[right].y;
        q->x = plasma_wrap(q->x + q->vx, (double)m);
        q->y = plasma_wrap(q->y + q->vy, (double)m);
        p->row_of[number] = (int32_t)q->y;
    }
}

static void run_round(const struct plasma *p)
{
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        struct share mine = share_of(p->m, p->threads, me);
        sort_by_rows(p, me);
        spread(p, mine, me);
        add_edge(p, mine);
        solve(p, mine, me);
        differentiate(p, mine);
        for (int64_t j = mine.first; j < mine.end; j++)
            push_row(p, j);
    }
}

static void start_rows(const struct plasma *p, struct share rows)
{
    for (int64_t k = rows.first * p->m; k < rows.end * p->m; k++) {
        p->electrons[k] = 0.0;
        p->potential[k] = (struct complex_number){0.0, 0.0};
        p->push[k] = (struct vector){0.0, 0.0};
    }
    int64_t a_row = p->m * PARTICLES_A_CELL;
    for (int64_t i = rows.first * a_row; i < rows.end * a_row; i++) {
        p->particle[i] = plasma_start(p->m, i);
        p->row_of[i] = (int32_t)p->particle[i].y;
        p->order[i] = 0;
    }
}

static void allocate(struct plasma *p)
{
    size_t cells = (size_t)(p->m * p->m), count = (size_t)p->count, threads = (size_t)p->threads;
    p->particle = kernel_allocate(count, sizeof *p->particle, "the particles");
    p->row_of = kernel_allocate(count, sizeof *p->row_of, "the particles' rows");
    p->order = kernel_allocate(count, sizeof *p->order, "the sorted particles");
    p->electrons = kernel_allocate(cells, sizeof *p->electrons, "the charge");
    p->potential = kernel_allocate(cells, sizeof *p->potential, "the potential");
    p->push = kernel_allocate(cells, sizeof *p->push, "the field");
    p->rows = places_make(p->m, p->threads);
    p->stiffness = kernel_allocate((size_t)p->m, sizeof *p->stiffness, "the wave numbers");
    p->edge = kernel_allocate(threads, sizeof *p->edge, "the threads' edges");
    p->fourier = kernel_allocate(threads, sizeof *p->fourier, "the threads' tables");
    p->column = kernel_allocate(threads, sizeof *p->column, "the threads' columns");
}

static struct plasma make(const struct kernel_options *options)
{
    struct plasma p = {.m = options->size, .threads = options->threads};
    p.count = p.m * p.m * PARTICLES_A_CELL;
    allocate(&p);
    for (int64_t a = 0; a < p.m; a++)
        p.stiffness[a] = plasma_stiffness(p.m, a);
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        struct share all = {0, p.m};
        p.edge[me] = kernel_allocate((size_t)p.m, sizeof *p.edge[me], "a thread's edge");
        p.column[me] = kernel_allocate((size_t)p.m, sizeof *p.column[me], "a thread's column");
        p.fourier[me] = fourier_make(p.m);
        if (!options->serial_init)
            start_rows(&p, share_of(p.m, p.threads, me));
        else if (me == 0)
            start_rows(&p, all);
    }
    return p;
}

static void discard(struct plasma *p)
{
    for (int t = 0; t < p->threads; t++) {
        free(p->edge[t]);
        free(p->column[t]);
        fourier_free(&p->fourier[t]);
    }
    void *const arrays[] = {p->particle, p->row_of,    p->order, p->electrons, p->potential,
                            p->push,     p->stiffness, p->edge,  p->fourier,   p->column};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    places_free(&p->rows);
}

static void ask_next_touch(const struct plasma *p)
{
    size_t cells = (size_t)(p->m * p->m), count = (size_t)p->count;
    kernel_note_next_touch(hn_next_touch(p->particle, count * sizeof *p->particle));
    kernel_note_next_touch(hn_next_touch(p->row_of, count * sizeof *p->row_of));
    kernel_note_next_touch(hn_next_touch(p->order, count * sizeof *p->order));
    kernel_note_next_touch(hn_next_touch(p->electrons, cells * sizeof *p->electrons));
    kernel_note_next_touch(hn_next_touch(p->potential, cells * sizeof *p->potential));
    kernel_note_next_touch(hn_next_touch(p->push, cells * sizeof *p->push));
}

static void iterate(const struct plasma *p, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            ask_next_touch(p);
        run_round(p);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

static double worse(double worst, double error)
{
    return error > worst || isnan(error) ? error : worst;
}

/* Of two places on a circle. */
static double apart(double a, double b, double m)
{
    double d = fabs(a - b);
    return d < m - d ? d : m - d;
}

static double reference_error(const struct plasma *p, int32_t rounds)
{
    struct particle *expected = plasma_reference(p->m, rounds);
    double worst = 0.0, m = (double)p->m;
    for (int64_t i = 0; i < p->count; i++) {
        const struct particle *a = &p->particle[i], *b = &expected[i];
        worst = worse(worst, fmax(apart(a->x, b->x, m), apart(a->y, b->y, m)));
        worst = worse(worst, fmax(fabs(a->vx - b->vx), fabs(a->vy - b->vy)));
    }
    free(expected);
    return worst;
}

/* Laplacian of the last potential against the last charge, which differs from the background by its
 * square root. */
static double gauss_error(const struct plasma *p)
{
    double worst = 0.0;
    int64_t m = p->m;
    const struct complex_number *v = p->potential;
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < m; i++) {
            double laplacian = v[j * m + after(m, i)].re + v[j * m + before(m, i)].re + v[after(m, j) * m + i].re +
                               v[before(m, j) * m + i].re - 4.0 * v[j * m + i].re;
            worst = worse(worst, fabs(laplacian - CHARGE * (p->electrons[j * m + i] - PARTICLES_A_CELL)));
        }
    return worst / (CHARGE * sqrt(PARTICLES_A_CELL));
}

/* Change of the mean velocity since the start. */
static double momentum_error(const struct plasma *p)
{
    double x = 0.0, y = 0.0;
    for (int64_t i = 0; i < p->count; i++) {
        struct particle start = plasma_start(p->m, i);
        x += p->particle[i].vx - start.vx;
        y += p->particle[i].vy - start.vy;
    }
    return fmax(fabs(x), fabs(y)) / (double)p->count;
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct plasma p = make(&options);
    iterate(&p, &options);
    const struct kernel_check checks[] = {
        {"deviation from the serial reference", reference_error(&p, options.iterations), 1e-9},
        {"error of Gauss's law", gauss_error(&p), 1e-9},
        {"change of the mean velocity", momentum_error(&p), 1e-12},
    };
    status = kernel_verify_checks(checks, 3);
    discard(&p);
    return status;
}
