/* Conjugate gradients.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_CG_SOLVE_H
#define I_CG_SOLVE_H

#include "matrix.h"

/* One sum a thread and purpose, two cache lines apart; added in the order of the threads, so that
 * results are the same in each run. */
struct partial {
    double value;
    char padding[120];
};

struct solver {
    const struct matrix *a;
    double *x, *r, *p, *q;
    struct partial *partials; /* two rows of `threads`, used in turn */
    int threads;
    double square; /* r'r */
    int negative;  /* steps in which p'Ap was not positive: a definite matrix has none */
};

/* Vectors, first touched in parallel or by the initial thread. */
struct solver solver_make(const struct matrix *a, int threads, int serial);
void solver_free(struct solver *s);

/* x = 0, r = p = right. */
void solver_begin(struct solver *s, const double *right, int serial);

/* One step. A residual that has become zero stays so. */
void solver_step(struct solver *s);

/* |right - A x| / |right|, by the initial thread. */
double true_residual(const struct solver *s, const double *right);

#endif
