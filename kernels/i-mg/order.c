/* Order of accuracy: the same flow on grids of 16^3, 32^3, ... cells, iterated until the residual
 * is far below the error of the discretisation. Split fluxes between cells' own states are of first
 * order.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"
#include "cycle.h"
#include "report.h"

#include <math.h>

#define COARSEST_STUDY 16
#define MOST_GRIDS 4
#define MOST_CYCLES 40
#define DROP 1e-4 /* of the residual: the density's error no longer changes in its fourth digit */
#define LEAST_ORDER 0.8

struct grid_result {
    int cells, cycles;
    double error;
};

static struct grid_result solve_on(int cells, const struct kernel_options *options)
{
    int levels = cells == COARSEST_STUDY ? MOST_LEVELS - 1 : MOST_LEVELS;
    struct hierarchy h = hierarchy_make(cells, levels, options);
    struct grid_result r = {.cells = cells};
    exchange(&h.level[0]);
    double start = residual_norm(&h), now = start;
    for (; r.cycles < MOST_CYCLES && now > DROP * start; r.cycles++)
        now = cycle(&h);
    r.error = now > DROP * start ? NAN : density_error(&h);
    hierarchy_free(&h);
    return r;
}

int verify_order(const struct kernel_options *options)
{
    struct kernel_order_row rows[MOST_GRIDS];
    int count = 0;
    for (int cells = COARSEST_STUDY; cells <= options->size && count < MOST_GRIDS; cells *= 2) {
        struct grid_result r = solve_on(cells, options);
        rows[count++] = (struct kernel_order_row){r.cells, r.cycles, r.error};
    }
    return kernel_verify_order("cells an edge", "cycles", "mean density error", rows, count, LEAST_ORDER);
}
