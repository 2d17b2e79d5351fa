/* Edge elements of lowest order, the wave whose field is known, and one step in time.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_CG_ELEMENTS_H
#define I_CG_ELEMENTS_H

#include "matrix.h"
#include "mesh.h"

/* Seconds (light crosses the unit cube in one) of a step on a mesh of `cells` cells an edge. */
double time_step(int32_t cells);

/* The wave's circulation along every edge: what an exact solution's unknowns are. */
void wave_on_edges(const struct mesh *m, double time, double *field);

/* Mass + weight stiffness among the unknowns, weight = step^2 / 4. */
struct matrix assemble(const struct mesh *m, double weight);

/* The right-hand side of the step from `now` and `before` (all edges) to `next`, of which the
 * surfaces' edges are used. */
void right_hand_side(const struct mesh *m, double weight, const double *before, const double *now, const double *next,
                     double *out);

/* |field - wave| / |wave| over the mesh, fields as vectors in space. */
double field_error(const struct mesh *m, double time, const double *field);

#endif
