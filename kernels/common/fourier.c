/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fourier.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>

#define TWO_PI 6.28318530717958647693

typedef struct complex_number number;

number root_of_unity(int64_t numerator, int64_t denominator)
{
    double angle = TWO_PI * (double)(numerator % denominator) / (double)denominator;
    number root = {cos(angle), -sin(angle)};
    return root;
}

struct fourier fourier_make(int64_t m)
{
    struct fourier f = {.m = m};
    f.roots = kernel_allocate((size_t)m, sizeof *f.roots, "roots of unity");
    f.room = kernel_allocate((size_t)m, sizeof *f.room, "room for a row");
    for (int64_t j = 0; j < m; j++)
        f.roots[j] = root_of_unity(j, m);
    return f;
}

void fourier_free(struct fourier *f)
{
    free(f->roots);
    free(f->room);
}

static number plus(number a, number b)
{
    number c = {a.re + b.re, a.im + b.im};
    return c;
}

static number minus(number a, number b)
{
    number c = {a.re - b.re, a.im - b.im};
    return c;
}

/* sign * i * a. */
static number turned(number a, double sign)
{
    number c = {-sign * a.im, sign * a.re};
    return c;
}

static number root(const struct fourier *f, int64_t j, int sign)
{
    number w = f->roots[j];
    if (sign > 0)
        w.im = -w.im;
    return w;
}

/* One pass: `groups` transforms of four become ready, each element standing for `stride`
 * interleaved transforms. */
static void pass_of_four(const struct fourier *f, const number *restrict in, number *restrict out, int64_t stride,
                         int sign)
{
    int64_t groups = f->m / (4 * stride);
    for (int64_t p = 0; p < groups; p++) {
        number w1 = root(f, p * stride, sign), w2 = root(f, 2 * p * stride, sign), w3 = root(f, 3 * p * stride, sign);
        const number *a = in + p * stride, *b = a + groups * stride, *c = b + groups * stride, *d = c + groups * stride;
        number *y = out + 4 * p * stride;
        for (int64_t q = 0; q < stride; q++) {
            number even = plus(a[q], c[q]), odd = plus(b[q], d[q]);
            number even_difference = minus(a[q], c[q]), odd_difference = turned(minus(b[q], d[q]), sign);
            y[q] = plus(even, odd);
            y[q + stride] = complex_product(w1, plus(even_difference, odd_difference));
            y[q + 2 * stride] = complex_product(w2, minus(even, odd));
            y[q + 3 * stride] = complex_product(w3, minus(even_difference, odd_difference));
        }
    }
}

/* The last pass when the number of factors of two is odd. */
static void pass_of_two(const struct fourier *f, const number *restrict in, number *restrict out)
{
    int64_t half = f->m / 2;
    for (int64_t q = 0; q < half; q++) {
        out[q] = plus(in[q], in[q + half]);
        out[q + half] = minus(in[q], in[q + half]);
    }
}

void fourier_row(const struct fourier *f, number *row, int sign)
{
    number *in = row, *out = f->room;
    int64_t stride = 1;
    for (; 4 * stride <= f->m; stride *= 4) {
        pass_of_four(f, in, out, stride, sign);
        number *swap = in;
        in = out;
        out = swap;
    }
    if (stride < f->m) {
        pass_of_two(f, in, out);
        in = out;
    }
    if (in != row)
        for (int64_t j = 0; j < f->m; j++)
            row[j] = in[j];
}
