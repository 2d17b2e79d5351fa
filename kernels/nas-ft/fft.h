/* Fourier transforms of WIDTH neighbouring lines at once.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef FFT_H
#define FFT_H

#include <stdint.h>

#define WIDTH 8 /* lines: two cache lines of complex numbers */
#define MOST_POINTS 2048
#define APART 40 /* numbers: so that four arrays do not begin at one place of a page, which makes loads wait for stores */

/* The roots of unity of the largest length: exp(2 pi i k / length), k < length / 2. */
struct roots {
    int32_t length;
    double re[MOST_POINTS / 2], im[MOST_POINTS / 2];
};

void roots_make(struct roots *roots, int32_t length);

/* Point k of line l is re[k * WIDTH + l], im[k * WIDTH + l]. */
struct lines {
    double re[MOST_POINTS * WIDTH + APART], im[MOST_POINTS * WIDTH + APART];
};

/* Transforms lines of n points (a power of two up to MOST_POINTS) in `data` with exp(sign 2 pi i j
 * k / n), not scaled. Gives the one of the two that holds the result; the other one is work
 * space. */
struct lines *fft(const struct roots *roots, int32_t n, int sign, struct lines *data, struct lines *work);

#endif
