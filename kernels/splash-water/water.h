/* What both WATER programs share: the molecules, their start, their motion, and the checks.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WATER_H
#define WATER_H

#include "model.h"
#include "options.h"

#include <stdint.h>

/* Four lines; who works on a molecule writes all of it. */
struct molecule {
    _Alignas(64) sites place;
    sites velocity, force;
};

/* A thread's part of the energies, in a line of its own. */
struct energy {
    _Alignas(64) double potential, kinetic;
};

/* All threads read it for every pair, so it shares no line with what else is on the initial
 * thread's stack. */
struct water {
    _Alignas(64) int64_t count; /* molecules */
    int64_t edge;               /* of the starting lattice, in molecules */
    int threads;
    struct model model;
    struct molecule *molecule;
    struct energy *part; /* one a thread */
    double *total;       /* energy after each round, and before the first */
};

/* The rule for sizes: KERNEL_RUN or an exit status. */
int water_check(const struct kernel_about *about, const struct kernel_options *options);

/* Edge of the cube that `count` molecules fill at the density of water. */
double water_box(int64_t count);

/* Arrays that are not touched yet. */
struct water water_make(const struct kernel_options *options, double cutoff);
void water_free(struct water *w);

/* Starts a molecule on the lattice, turned at random, with the velocities of 300 K. Depends on its
 * number only. */
void water_start(const struct water *w, int64_t i);

/* Oxygen's place of a molecule on the lattice. */
void water_lattice(const struct water *w, int64_t i, double *place);

/* Takes away the momentum of all, once all have started. */
void water_rest(const struct water *w);

/* The two halves of a step of velocity Verlet: half a kick and the way; half a kick, which gives
 * the kinetic energy. */
void water_move(struct molecule *m);
double water_kick(struct molecule *m);

/* Adds the threads' parts. */
double water_energy(const struct water *w);

/* Marks, next touch and `step` for each round. */
typedef void water_step(void *program);
void water_iterate(const struct water *w, const struct kernel_options *options, water_step *step, void *program);

/* Energy drift, momentum, forces against differences of the potential, which is summed over all
 * molecules. */
int water_verify(const struct water *w, int32_t rounds);

#endif
