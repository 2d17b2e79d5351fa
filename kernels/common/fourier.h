/* Complex Fourier transform of one row whose length is a power of two: y[k] = sum of x[j] exp(-2 pi
 * i j k / m).
 *
 * Source: T. Stockham's self-sorting method, as in C. Van Loan, Computational Frameworks for the
 * Fast Fourier Transform (SIAM 1992), section 1.7, with factors of four and at most one of two.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_FOURIER_H
#define KERNEL_FOURIER_H

#include <stdint.h>

struct complex_number {
    double re, im;
};

static inline struct complex_number complex_product(struct complex_number a, struct complex_number b)
{
    struct complex_number c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return c;
}

/* exp(-2 pi i numerator / denominator). */
struct complex_number root_of_unity(int64_t numerator, int64_t denominator);

/* What a thread needs to transform rows of m numbers: m roots and room for m numbers, both its
 * own. */
struct fourier {
    int64_t m;
    struct complex_number *roots, *room;
};

/* Called by the thread that will use it, so that the tables lie where it runs. */
struct fourier fourier_make(int64_t m);
void fourier_free(struct fourier *f);

/* In place; `sign` -1 is the transform above, +1 its inverse without the factor 1 / m. */
void fourier_row(const struct fourier *f, struct complex_number *row, int sign);

#endif
