/* i-mg: steady compressible flow in three dimensions by multigrid on a curvilinear multi-block
 * grid.
 *
 * It stands for I-MG of Löf, Nordén and Holmgren (section 3: Euler equations, finite volumes with
 * split fluxes, red-black symmetric Gauss-Seidel-Newton inside a full-approximation multigrid of
 * five levels, 10 cycles on 128^3 cells). Their program is not public; sources of the methods are
 * in flux.h and cycle.c, the flow is one whose solution is known.
 *
 * Placement. With `--init parallel` each thread fills in the planes that it computes, on every
 * level; with `--init serial` the initial thread fills in all. There is no untimed round.
 * `--next-touch` is asked at the top of round 0 for the arrays of all blocks and levels, each of
 * which is an allocation of its own: the small ones lie in the heap between others.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "check.h"
#include "cycle.h"
#include "grid.h"
#include "homenode.h"
#include "options.h"
#include "report.h"

#include <math.h>

#define FACTOR 0.6 /* mean over the standard cycles */
#define ERROR 0.22 /* of the density, times cells an edge */
#define ROUNDING 1e-13

static double bytes(int64_t size, int letter)
{
    (void)letter;
    return hierarchy_bytes((int)size, MOST_LEVELS);
}

static const struct kernel_about about = {
    .name = "i-mg",
    .summary = "3-D Euler equations, finite volumes with split fluxes, five-level multigrid",
    .size_meaning = "cells an edge of the grid, a multiple of 32",
    .classes_from = "cells an edge; B is the paper's",
    .example = "i-mg --class A --threads 4 --init serial --next-touch",
    .classes = {{'S', 32, 5}, {'W', 64, 10}, {'A', 96, 10}, {'B', 128, 10}},
    .default_class = 'A',
    .least_size = 32,
    .most_size = 1024,
    .multiple_of = 32,
    .multiple_because = "two blocks of five levels a direction need",
    .extras = EXTRA_ORDER,
    .bytes = bytes,
};

static void mark_array(void *array, size_t length)
{
    kernel_note_next_touch(hn_next_touch(array, length));
}

static void iterate(struct hierarchy *h, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            hierarchy_visit(h, mark_array);
        cycle(h);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

static int verify(struct hierarchy *h, const struct kernel_options *options, double before)
{
    double after = residual_norm(h);
    if (!options->standard_iterations)
        return kernel_not_verified("non-standard iterations", "residual", after);
    const struct kernel_bound bounds[] = {
        {"residual factor a cycle", pow(after / before, 1.0 / options->iterations), FACTOR},
        {"mean density error", density_error(h), ERROR / (double)options->size},
        {"uniform flow's defect", uniform_flow_defect(h), ROUNDING},
    };
    return kernel_verify_bounds(bounds, 3);
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    if (kernel_text_option("--verify"))
        return verify_order(&options);
    struct hierarchy h = hierarchy_make((int)options.size, MOST_LEVELS, &options);
    exchange(&h.level[0]);
    double before = residual_norm(&h);
    iterate(&h, &options);
    status = verify(&h, &options, before);
    hierarchy_free(&h);
    return status;
}
