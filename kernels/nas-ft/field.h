/* The fields of NAS FT and what a round does with them.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef FIELD_H
#define FIELD_H

#include "fft.h"

#include <stddef.h>

struct field {
    int32_t nx, ny, nz;
    size_t row, plane; /* numbers from row to row and from plane to plane: padded, for powers of two share cache sets */
    double *spectrum;  /* complex numbers, real and imaginary part in turn: the state in Fourier space */
    double *state;     /* in real space */
    double *decay[3];  /* a round's factor for each wave number in x, y, z */
    struct roots roots;
};

/* The grid of a class, or of a number of points (a power of two) when `letter` is 0. */
struct field field_shape(int64_t points, int letter);
size_t field_bytes(const struct field *f); /* of one of the two arrays */

void field_allocate(struct field *f);
void field_free(struct field *f);

/* First touch of both arrays: plane by plane by the threads that use them, or all by the initial
 * thread. */
void field_clear(const struct field *f, int serial);

/* The random initial state and its transform, which becomes `spectrum`. */
void field_start(const struct field *f);

/* Multiplies `spectrum` by the decay of one unit of time and transforms it back to `state`. */
void field_round(const struct field *f);

void field_checksum(const struct field *f, double sum[2]);

const double (*official_checksums(int letter))[2];

#endif
