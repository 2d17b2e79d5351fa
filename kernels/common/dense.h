/* The matrix of the LU programs, and the check of its factors. It is diagonally dominant, so no
 * pivoting is needed.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_DENSE_H
#define KERNEL_DENSE_H

#include <stdint.h>

/* Row i, column j of A, which has n rows: noise, and n more on the diagonal. */
double dense_entry(int64_t n, int64_t i, int64_t j);

/* y = L U x by a program's factors. */
typedef void dense_product(const void *factors, const double *x, double *y);

/* Compares L U x with A x for a random x and reports: 0, or 1 when the factors are wrong. */
int dense_verify(int64_t n, dense_product *product, const void *factors);

#endif
