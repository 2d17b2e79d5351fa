/* The timed part of NAS CG.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef NAS_CG_SOLVE_H
#define NAS_CG_SOLVE_H

#include "matrix.h"
#include "options.h"

/* One sum per thread and purpose, a cache line apart. Adding them in the order of the threads makes
 * the result the same in each run; an OpenMP reduction adds them in the order in which threads
 * arrive. */
struct partial {
    double value;
    char padding[120];
};

struct solver {
    struct matrix a;
    double *x, *z, *p, *q, *r;
    struct partial *partials; /* two rows of `threads`, used in turn */
    int threads;
};

struct solver solver_make(int32_t n, int32_t nonzeros, double shift, const struct kernel_options *options);
void solver_free(struct solver *s);

/* x = 1: the start of the power iteration. */
void solver_reset(struct solver *s, int serial);

/* One round: solve A z = x by 25 steps of conjugate gradients, then x = z / |z|. Gives x'z, and |x
 * - A z| by `residual`. */
double solver_round(struct solver *s, double *residual);

#endif
