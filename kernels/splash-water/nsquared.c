/* splash-water-nsquared: motion of water molecules, every pair looked at.
 *
 * Source: J. P. Singh, W.-D. Weber and A. Gupta, SPLASH, Computer Architecture News 20 (1992), and
 * S. C. Woo et al., The SPLASH-2 Programs, ISCA 1995, section 3 (WATER-NSQUARED). Tao, Schulz and
 * Karl use 343 molecules. Each thread owns neighbouring molecules and computes their pairs with the
 * next half of all molecules; interactions end at half the box. As in SPLASH-2, forces are first
 * added up in memory of the thread's own; then (ours, instead of locks) each owner adds the
 * threads' sums in their order, so that a number of threads always gives the same result. Velocity
 * Verlet takes the place of the predictor-corrector (ours); for the potential see model.h.
 *
 * Verified by energy, momentum, and forces against differences of the potential.
 *
 * Placement. Molecules are written by their owner and read by half of the threads, the sums are
 * written by one thread and read by all: false sharing and true sharing of pages even at 343
 * molecules, 88 KB. `--init parallel`: the owner starts its molecules.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "report.h"
#include "share.h"
#include "water.h"

#include <omp.h>
#include <stdlib.h>

#define PAGE 4096
#define STRIDE 512 /* sums of 72 bytes in a number of whole pages */

/* Of a hundred threads. */
static double bytes(int64_t size, int letter)
{
    (void)letter;
    return (double)(sizeof(struct molecule) + 100 * sizeof(sites)) * (double)size;
}

static const struct kernel_about about = {
    .name = "splash-water-nsquared",
    .summary = "SPLASH-2 WATER, every pair of molecules",
    .size_meaning = "molecules, a cube of a whole number",
    .classes_from = "molecules (S as in Tao, Schulz and Karl, W as in SPLASH-2)",
    .example = "splash-water-nsquared --size 343 --threads 4",
    .classes = {{'S', 343, 20}, {'W', 512, 20}, {'A', 1728, 20}, {'B', 4096, 20}},
    .default_class = 'W',
    .least_size = 27,
    .most_size = 1000000,
    .bytes = bytes,
};

struct nsquared {
    struct water water;
    sites *sums;    /* [thread][molecule] */
    int64_t stride; /* from a thread's sums to the next one's: whole pages */
};

/* Pairs of molecule i with the half of all molecules that comes after it; of an even number, the
 * middle one has two. */
static double add_pairs(const struct water *w, int64_t i, sites *sums)
{
    int64_t n = w->count, last = n % 2 == 0 && i >= n / 2 ? n / 2 - 1 : n / 2;
    double energy = inner_energy(w->molecule[i].place, sums[i]);
    for (int64_t k = 1; k <= last; k++) {
        int64_t j = i + k < n ? i + k : i + k - n;
        energy += pair_energy(&w->model, w->molecule[i].place, w->molecule[j].place, sums[i], sums[j]);
    }
    return energy;
}

static void clear_sums(const struct water *w, sites *sums)
{
    double *all = &sums[0][0][0];
    for (int64_t k = 0; k < w->count * SITES * 3; k++)
        all[k] = 0.0;
}

static void gather_force(const struct nsquared *p, int64_t i)
{
    struct molecule *m = &p->water.molecule[i];
    for (int s = 0; s < SITES; s++)
        for (int c = 0; c < 3; c++) {
            double sum = 0.0;
            for (int t = 0; t < p->water.threads; t++)
                sum += p->sums[t * p->stride + i][s][c];
            m->force[s][c] = sum;
        }
}

/* All threads' molecules must be where they shall be. Ends with a barrier. */
static void find_forces(const struct nsquared *p, int me)
{
    const struct water *w = &p->water;
    struct share mine = share_of(w->count, w->threads, me);
    sites *sums = p->sums + me * p->stride;
    double energy = 0.0;
    clear_sums(w, sums);
    for (int64_t i = mine.first; i < mine.end; i++)
        energy += add_pairs(w, i, sums);
    w->part[me].potential = energy;
#pragma omp barrier
    for (int64_t i = mine.first; i < mine.end; i++)
        gather_force(p, i);
}

static void step(void *program)
{
    const struct nsquared *p = program;
    const struct water *w = &p->water;
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        struct share mine = share_of(w->count, w->threads, me);
        double energy = 0.0;
        for (int64_t i = mine.first; i < mine.end; i++)
            water_move(&w->molecule[i]);
#pragma omp barrier
        find_forces(p, me);
        for (int64_t i = mine.first; i < mine.end; i++)
            energy += water_kick(&w->molecule[i]);
        w->part[me].kinetic = energy;
    }
}

static struct nsquared make(const struct kernel_options *options)
{
    struct nsquared p = {.water = water_make(options, 0.5 * water_box(options->size))};
    const struct water *w = &p.water;
    p.stride = (w->count + STRIDE - 1) / STRIDE * STRIDE;
    p.sums = kernel_allocate_aligned(PAGE, (size_t)(w->threads * p.stride), sizeof *p.sums, "the threads' sums");
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        struct share mine = share_of(w->count, w->threads, me);
        if (options->serial_init)
            mine = me == 0 ? (struct share){0, w->count} : (struct share){0, 0};
        for (int64_t i = mine.first; i < mine.end; i++)
            water_start(w, i);
    }
    water_rest(w);
#pragma omp parallel
    find_forces(&p, omp_get_thread_num());
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
    struct nsquared p = make(&options);
    water_iterate(&p.water, &options, step, &p);
    status = water_verify(&p.water, options.iterations);
    free(p.sums);
    water_free(&p.water);
    return status;
}
