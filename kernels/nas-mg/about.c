/* nas-mg's description for the shared option parser: C tables are shorter in C.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "options.h"
#include "report.h"

/* u and r hold all levels, v the finest, each with ghost points. */
static double bytes(int64_t size, int letter)
{
    (void)letter;
    double points = 0.0, finest = (double)(size + 2);
    for (int64_t edge = size; edge >= 2; edge /= 2)
        points += (double)(edge + 2) * (double)(edge + 2) * (double)(edge + 2);
    return 8.0 * (2.0 * points + finest * finest * finest);
}

static const struct kernel_about about = {
    .name = "nas-mg",
    .summary = "NAS MG, multigrid for a 3-D Poisson problem, periodic boundaries",
    .size_meaning = "points an edge of the finest grid, a power of two",
    .classes_from = "of the NAS Parallel Benchmarks",
    .example = "nas-mg --class A --threads 4 --init serial --next-touch",
    .classes = {{'S', 32, 4}, {'W', 128, 4}, {'A', 256, 4}, {'B', 256, 20}},
    .default_class = 'A',
    .least_size = 4,
    .most_size = 1024,
    .power_of_two = 1,
    .extras = EXTRA_NPB,
    .bytes = bytes,
};

int nas_mg_parse(int count, const char *packed, struct kernel_options *options)
{
    int status = kernel_parse_packed(&about, count, packed, options);
    if (status == KERNEL_RUN)
        kernel_start(&about, options);
    return status;
}

int nas_mg_verify(double norm, double expected)
{
    return kernel_verify_value("residual norm", norm, expected, 1e-8);
}

int nas_mg_not_verified(int size_is_standard, double norm)
{
    return kernel_not_verified(size_is_standard ? "non-standard iterations" : "non-standard size", "residual norm",
                               norm);
}
