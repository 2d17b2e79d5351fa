/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "dense.h"

#include "noise.h"
#include "report.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

double dense_entry(int64_t n, int64_t i, int64_t j)
{
    return noise((uint64_t)(i * n + j + 1)) + (i == j ? (double)n : 0.0);
}

static double largest_residual(int64_t n, const double *x, const double *y)
{
    double worst = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int64_t j = 0; j < n; j++)
            sum += dense_entry(n, i, j) * x[j];
        double error = fabs(sum - y[i]);
        worst = error > worst || isnan(error) ? error : worst;
    }
    return worst;
}

/* Relative to the rows' sum of magnitudes, about n for the diagonal and n/4 beside it, times |x| <=
 * 1/2. */
int dense_verify(int64_t n, dense_product *product, const void *factors)
{
    double *x = kernel_allocate((size_t)n, sizeof *x, "the probe");
    double *y = kernel_allocate((size_t)n, sizeof *y, "the product");
    for (int64_t i = 0; i < n; i++)
        x[i] = noise(UINT64_C(0x8000000000000000) + (uint64_t)i);
    product(factors, x, y);
    double relative = largest_residual(n, x, y) / (double)n;
    free(x);
    free(y);
    return kernel_verify_bound("relative residual of A - L U", relative, 4.0 * DBL_EPSILON * sqrt((double)n));
}
