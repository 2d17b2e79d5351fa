/* What is known of the solution, for verification. These touch everything, so they come after the
 * timed rounds.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_MG_CHECK_H
#define I_MG_CHECK_H

#include "grid.h"

/* Mean over the volume of |density - exact density|, by the cells' middles. */
double density_error(const struct hierarchy *h);

/* Fills the finest level, ghosts included, with one uniform flow and gives the root mean square of
 * the net flux out of a cell, in units of the flux through a face: rounding errors only, however
 * curved the grid. Destroys the solution. */
double uniform_flow_defect(struct hierarchy *h);

/* Solves on coarser grids and on this one, prints a table and the line of verification; gives the
 * exit status. */
int verify_order(const struct kernel_options *options);

#endif
