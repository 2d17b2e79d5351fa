/* Stockham's self-sorting transform, radix 4 with one step of radix 2 where the exponent is odd.
 *
 * Source: P. N. Swarztrauber, FFT algorithms for vector computers, Parallel Computing 1 (1984); C.
 * Van Loan, Computational Frameworks for the Fast Fourier Transform (1992), section 1.7.
 *
 * A step of radix r takes the transforms of length m that are done at distance n / m to length r m.
 * Real and imaginary parts lie apart and the lines side by side, so every operation is one on
 * vectors of WIDTH numbers.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "fft.h"

#include <math.h>

void roots_make(struct roots *roots, int32_t length)
{
    const double pi = 3.14159265358979323846;
    roots->length = length;
    for (int32_t k = 0; k < length / 2; k++) {
        roots->re[k] = cos(2.0 * pi * k / length);
        roots->im[k] = sin(2.0 * pi * k / length);
    }
}

/* exp(sign 2 pi i k / n) for 0 <= k < n. */
static void root(const struct roots *roots, int32_t n, int32_t k, int sign, double *re, double *im)
{
    int32_t half = roots->length / 2, place = k * (roots->length / n);
    double turn = place >= half ? -1.0 : 1.0;
    *re = turn * roots->re[place % half];
    *im = turn * sign * roots->im[place % half];
}

/* Transforms of length m, of which there are 2 q, become q of length 2 m. */
static void radix2(const struct roots *roots, int32_t m, int32_t q, int sign, const struct lines *restrict from,
                   struct lines *restrict to)
{
    for (int32_t j = 0; j < m; j++) {
        double wr, wi;
        root(roots, 2 * m, j, sign, &wr, &wi);
        for (int32_t k = 0; k < q * WIDTH; k++) {
            int32_t a = j * 2 * q * WIDTH + k, b = a + q * WIDTH, x = j * q * WIDTH + k, y = x + m * q * WIDTH;
            double br = wr * from->re[b] - wi * from->im[b], bi = wr * from->im[b] + wi * from->re[b];
            to->re[x] = from->re[a] + br;
            to->im[x] = from->im[a] + bi;
            to->re[y] = from->re[a] - br;
            to->im[y] = from->im[a] - bi;
        }
    }
}

/* Transforms of length m, of which there are 4 q, become q of length 4 m. */
static void radix4(const struct roots *roots, int32_t m, int32_t q, int sign, const struct lines *restrict from,
                   struct lines *restrict to)
{
    int32_t s = q * WIDTH, d = m * s;
    for (int32_t j = 0; j < m; j++) {
        double w1r, w1i, w2r, w2i, w3r, w3i;
        root(roots, 4 * m, j, sign, &w1r, &w1i);
        root(roots, 4 * m, 2 * j, sign, &w2r, &w2i);
        root(roots, 4 * m, 3 * j, sign, &w3r, &w3i);
        const double *restrict ar = from->re + j * 4 * s, *restrict ai = from->im + j * 4 * s;
        double *restrict xr = to->re + j * s, *restrict xi = to->im + j * s;
        for (int32_t k = 0; k < s; k++) {
            double br = w1r * ar[k + s] - w1i * ai[k + s], bi = w1r * ai[k + s] + w1i * ar[k + s];
            double cr = w2r * ar[k + 2 * s] - w2i * ai[k + 2 * s], ci = w2r * ai[k + 2 * s] + w2i * ar[k + 2 * s];
            double dr = w3r * ar[k + 3 * s] - w3i * ai[k + 3 * s], di = w3r * ai[k + 3 * s] + w3i * ar[k + 3 * s];
            double er = ar[k] + cr, ei = ai[k] + ci, fr = ar[k] - cr, fi = ai[k] - ci;
            double gr = br + dr, gi = bi + di, hr = sign * (di - bi), hi = sign * (br - dr);
            xr[k] = er + gr;
            xi[k] = ei + gi;
            xr[k + d] = fr + hr;
            xi[k + d] = fi + hi;
            xr[k + 2 * d] = er - gr;
            xi[k + 2 * d] = ei - gi;
            xr[k + 3 * d] = fr - hr;
            xi[k + 3 * d] = fi - hi;
        }
    }
}

struct lines *fft(const struct roots *roots, int32_t n, int sign, struct lines *data, struct lines *work)
{
    int32_t m = 1;
    while (m < n) {
        if (n / m % 4 == 0) {
            radix4(roots, m, n / m / 4, sign, data, work);
            m *= 4;
        } else {
            radix2(roots, m, n / m / 2, sign, data, work);
            m *= 2;
        }
        struct lines *result = work;
        work = data;
        data = result;
    }
    return data;
}
