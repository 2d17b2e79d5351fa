/* The full-approximation multigrid cycle.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_MG_CYCLE_H
#define I_MG_CYCLE_H

#include "grid.h"

/* One V-cycle. Gives the root mean square of the finest level's residual after the sweeps before it
 * went down. */
double cycle(struct hierarchy *h);

/* Root mean square of the finest level's residual, all equations alike, per cell. */
double residual_norm(struct hierarchy *h);

/* Copies states across the seams between blocks of a level. */
void exchange(const struct level *level);

#endif
