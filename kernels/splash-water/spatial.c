/* splash-water-spatial: motion of water molecules with cells, so that only near molecules are
 * looked at.
 *
 * Source: S. C. Woo et al., The SPLASH-2 Programs, ISCA 1995, section 3 (WATER-SPATIAL): the box is
 * cut into cells as wide as the interactions reach, each thread owns neighbouring cells and the
 * molecules in them, in linked lists. Ours: after each step the lists are made anew from the
 * molecules' cells, in the order of their numbers, and a thread computes the forces on its own
 * molecules only, each pair twice: no locks, and a number of threads always gives the same result.
 * Velocity Verlet takes the place of the predictor-corrector (ours); for the potential see model.h.
 *
 * Verified by energy, momentum, and forces against differences of the potential, which knows no
 * cells.
 *
 * Placement. Molecules stay where they are in memory but move through the cells, so whose they are
 * changes slowly. `--init parallel`: a molecule is started by its first owner.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "report.h"
#include "share.h"
#include "water.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#define REACH 7.0 /* angstrom */
#define NOBODY (-1)

static double bytes(int64_t size, int letter)
{
    (void)letter;
    return (double)(sizeof(struct molecule) + 3 * sizeof(int32_t)) * (double)size;
}

static const struct kernel_about about = {
    .name = "splash-water-spatial",
    .summary = "SPLASH-2 WATER with cells",
    .size_meaning = "molecules, a cube of a whole number",
    .classes_from = "molecules (S as in Tao, Schulz and Karl, W as in SPLASH-2)",
    .example = "splash-water-spatial --class A --threads 4 --init serial",
    .classes = {{'S', 343, 20}, {'W', 512, 20}, {'A', 4096, 20}, {'B', 32768, 20}},
    .default_class = 'A',
    .least_size = 343, /* three cells an edge, so that a cell's neighbours differ */
    .most_size = 100000000,
    .bytes = bytes,
};

struct spatial {
    struct water water;
    int64_t edge;     /* cells an edge */
    int32_t *cell_of; /* of each molecule */
    int32_t *next;    /* molecule in the same cell */
    int32_t *head;    /* first molecule of each cell */
};

static int64_t cells(const struct spatial *p)
{
    return p->edge * p->edge * p->edge;
}

static int64_t cell_along(const struct spatial *p, double x)
{
    int64_t c = (int64_t)(x / p->water.model.box * (double)p->edge);
    return c < p->edge ? c : p->edge - 1; /* rounding at the box's end */
}

/* Planes of cells lie one after the other, as the lattice's planes do. */
static int32_t cell_at(const struct spatial *p, const double *place)
{
    int64_t x = cell_along(p, place[0]), y = cell_along(p, place[1]), z = cell_along(p, place[2]);
    return (int32_t)((z * p->edge + y) * p->edge + x);
}

/* Takes a molecule back into the box as a whole. */
static void wrap(const struct spatial *p, struct molecule *m)
{
    double box = p->water.model.box;
    for (int c = 0; c < 3; c++) {
        double shift = box * floor(m->place[0][c] / box);
        if (shift != 0.0)
            for (int s = 0; s < SITES; s++)
                m->place[s][c] -= shift;
    }
}

/* The lists of a thread's cells, from the cells of all molecules. From the last, so that numbers
 * rise in a list. */
static void make_lists(const struct spatial *p, struct share mine)
{
    for (int64_t c = mine.first; c < mine.end; c++)
        p->head[c] = NOBODY;
    for (int64_t i = p->water.count - 1; i >= 0; i--) {
        int32_t c = p->cell_of[i];
        if (c < mine.first || c >= mine.end)
            continue;
        p->next[i] = p->head[c];
        p->head[c] = (int32_t)i;
    }
}

/* Forces on molecule i by those of a cell; half of their energy. */
static double add_cell(const struct spatial *p, int32_t i, int64_t cell, sites force)
{
    const struct water *w = &p->water;
    sites others = {{0.0}};
    double energy = 0.0;
    for (int32_t j = p->head[cell]; j != NOBODY; j = p->next[j])
        if (j != i)
            energy += pair_energy(&w->model, w->molecule[i].place, w->molecule[j].place, force, others);
    return 0.5 * energy;
}

static double add_neighbours(const struct spatial *p, int32_t i, int64_t cell, sites force)
{
    int64_t e = p->edge, x = cell % e, y = cell / e % e, z = cell / (e * e);
    double energy = 0.0;
    for (int64_t dz = e - 1; dz <= e + 1; dz++)
        for (int64_t dy = e - 1; dy <= e + 1; dy++)
            for (int64_t dx = e - 1; dx <= e + 1; dx++)
                energy += add_cell(p, i, ((z + dz) % e * e + (y + dy) % e) * e + (x + dx) % e, force);
    return energy;
}

static double find_force(const struct spatial *p, int32_t i, int64_t cell)
{
    struct molecule *m = &p->water.molecule[i];
    sites force = {{0.0}};
    double energy = inner_energy(m->place, force) + add_neighbours(p, i, cell, force);
    for (int s = 0; s < SITES; s++)
        for (int c = 0; c < 3; c++)
            m->force[s][c] = force[s][c];
    return energy;
}

static void find_forces(const struct spatial *p, struct share mine, int me)
{
    double energy = 0.0;
    for (int64_t c = mine.first; c < mine.end; c++)
        for (int32_t i = p->head[c]; i != NOBODY; i = p->next[i])
            energy += find_force(p, i, c);
    p->water.part[me].potential = energy;
}

static void move_molecules(const struct spatial *p, struct share mine)
{
    for (int64_t c = mine.first; c < mine.end; c++)
        for (int32_t i = p->head[c]; i != NOBODY; i = p->next[i]) {
            struct molecule *m = &p->water.molecule[i];
            water_move(m);
            wrap(p, m);
            p->cell_of[i] = cell_at(p, m->place[0]);
        }
}

static double kick_molecules(const struct spatial *p, struct share mine)
{
    double energy = 0.0;
    for (int64_t c = mine.first; c < mine.end; c++)
        for (int32_t i = p->head[c]; i != NOBODY; i = p->next[i])
            energy += water_kick(&p->water.molecule[i]);
    return energy;
}

static void step(void *program)
{
    const struct spatial *p = program;
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        struct share mine = share_of(cells(p), p->water.threads, me);
        move_molecules(p, mine);
#pragma omp barrier
        make_lists(p, mine);
#pragma omp barrier
        find_forces(p, mine, me);
        /* Kicks change no places, but write the lines in which others still read places. */
#pragma omp barrier
        p->water.part[me].kinetic = kick_molecules(p, mine);
    }
}

/* Started by the owner of the cell in which it begins. */
static void start(const struct spatial *p, int serial)
{
    const struct water *w = &p->water;
#pragma omp parallel if (!serial)
    {
        struct share mine = share_of(cells(p), omp_get_num_threads(), omp_get_thread_num());
        for (int64_t i = 0; i < w->count; i++) {
            double place[3];
            water_lattice(w, i, place);
            int32_t c = cell_at(p, place);
            if (c < mine.first || c >= mine.end)
                continue;
            water_start(w, i);
            p->cell_of[i] = c;
        }
    }
}

static struct spatial make(const struct kernel_options *options)
{
    struct spatial p = {.water = water_make(options, REACH)};
    size_t count = (size_t)p.water.count;
    p.edge = (int64_t)(p.water.model.box / REACH);
    p.cell_of = kernel_allocate(count, sizeof *p.cell_of, "the molecules' cells");
    p.next = kernel_allocate(count, sizeof *p.next, "the lists");
    p.head = kernel_allocate((size_t)cells(&p), sizeof *p.head, "the cells");
    start(&p, options->serial_init);
    water_rest(&p.water);
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        struct share mine = share_of(cells(&p), p.water.threads, me);
        make_lists(&p, mine);
#pragma omp barrier
        find_forces(&p, mine, me);
    }
    return p;
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status == KERNEL_RUN)
        status = water_check(&about, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct spatial p = make(&options);
    water_iterate(&p.water, &options, step, &p);
    status = water_verify(&p.water, options.iterations);
    free(p.cell_of);
    free(p.next);
    free(p.head);
    water_free(&p.water);
    return status;
}
