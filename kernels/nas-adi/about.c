/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "adi_about.h"

#include "report.h"

/* Five quantities of u, right-hand side and forcing, seven derived ones; rows are of odd length. */
double adi_bytes(int64_t size, int letter)
{
    (void)letter;
    return 8.0 * 22.0 * (double)(size | 1) * (double)size * (double)size;
}

int adi_parse(int count, const char *packed, struct kernel_options *options, int *letter)
{
    int status = kernel_parse_packed(&adi_about, count, packed, options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&adi_about, options);
    *letter = options->class_letter ? options->class_letter : kernel_class_below(&adi_about, options->size)->letter;
    return status;
}

/* `error` is the largest relative deviation of the ten norms. */
int adi_verify(double error)
{
    return kernel_verify_bound("largest relative deviation of the ten norms", error, 1e-8);
}

int adi_not_verified(int size_is_standard, double norm)
{
    return kernel_not_verified(size_is_standard ? "non-standard iterations" : "non-standard size",
                               "first residual norm", norm);
}
