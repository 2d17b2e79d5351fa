/* A diffusion equation solved in Fourier space. Source: The NAS Parallel Benchmarks, RNR-94-007.
 *
 * A transform in three dimensions is two passes: along z, where threads share out the rows of
 * constant y and reach into all planes, and along y and x inside each plane, where threads share
 * out the planes. Between them the whole field changes hands.
 *
 * The decay exp(-4 alpha pi^2 |k|^2) of a wave is the product of its three directions' factors;
 * multiplying the spectrum by it and transforming along z is one pass.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "field.h"

#include "nas_random.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALPHA 1e-6
#define LINE 64
#define COMPLEX_A_LINE 4

struct field field_shape(int64_t points, int letter)
{
    struct field f = {0};
    int exponent = 0;
    while (INT64_C(2) << exponent <= points)
        exponent++;
    int z = letter == 'W' ? 5 : exponent / 3, y = letter == 'W' ? 7 : (exponent - z) / 2;
    f.nx = 1 << (exponent - z - y);
    f.ny = 1 << y;
    f.nz = 1 << z;
    f.row = (size_t)f.nx + COMPLEX_A_LINE;
    f.plane = f.row * (size_t)f.ny + COMPLEX_A_LINE;
    return f;
}

size_t field_bytes(const struct field *f)
{
    return f->plane * (size_t)f->nz * 2 * sizeof *f->state;
}

static double *make_decay(int32_t n)
{
    const double pi = 3.14159265358979323846;
    double *decay = kernel_allocate((size_t)n, sizeof *decay, "the decay of waves");
    for (int32_t k = 0; k < n; k++) {
        double wave = k < n / 2 ? k : k - n;
        decay[k] = exp(-4.0 * ALPHA * pi * pi * wave * wave);
    }
    return decay;
}

void field_allocate(struct field *f)
{
    size_t bytes = field_bytes(f);
    f->spectrum = kernel_allocate_aligned(LINE, bytes, 1, "the spectrum");
    f->state = kernel_allocate_aligned(LINE, bytes, 1, "the state");
    f->decay[0] = make_decay(f->nx);
    f->decay[1] = make_decay(f->ny);
    f->decay[2] = make_decay(f->nz);
    int32_t longest = f->nx > f->ny ? f->nx : f->ny;
    roots_make(&f->roots, longest > f->nz ? longest : f->nz);
}

void field_free(struct field *f)
{
    free(f->spectrum);
    free(f->state);
    for (int i = 0; i < 3; i++)
        free(f->decay[i]);
}

void field_clear(const struct field *f, int serial)
{
    size_t numbers = 2 * f->plane;
#pragma omp parallel for schedule(static) if (!serial)
    for (int32_t k = 0; k < f->nz; k++) {
        memset(f->spectrum + (size_t)k * numbers, 0, numbers * sizeof *f->spectrum);
        memset(f->state + (size_t)k * numbers, 0, numbers * sizeof *f->state);
    }
}

/* One stream of random numbers over the grid, x fastest; a plane's thread jumps to its plane. */
static void set_random(const struct field *f)
{
#pragma omp parallel for schedule(static)
    for (int32_t k = 0; k < f->nz; k++) {
        uint64_t state = nas_random_jump(NAS_SEED, (uint64_t)k * 2 * (uint64_t)f->nx * (uint64_t)f->ny);
        for (int32_t j = 0; j < f->ny; j++)
            nas_random_fill(&state, 2 * f->nx, f->state + 2 * ((size_t)k * f->plane + (size_t)j * f->row));
    }
}

/* Point `place` of WIDTH lines that lie side by side. */
static void load(struct lines *lines, int32_t place, const double *restrict from)
{
    for (int32_t l = 0; l < WIDTH; l++) {
        lines->re[place * WIDTH + l] = from[2 * l];
        lines->im[place * WIDTH + l] = from[2 * l + 1];
    }
}

static void store(const struct lines *lines, int32_t place, double *restrict to)
{
    for (int32_t l = 0; l < WIDTH; l++) {
        to[2 * l] = lines->re[place * WIDTH + l];
        to[2 * l + 1] = lines->im[place * WIDTH + l];
    }
}

/* x *= factor of each of WIDTH neighbours in x; `rest` is the factor of y and z. */
static void fade(double *restrict x, const double *restrict factor, double rest)
{
    for (int32_t l = 0; l < WIDTH; l++) {
        double both = rest * factor[l];
        x[2 * l] *= both;
        x[2 * l + 1] *= both;
    }
}

/* Along z for one row of lines. A round fades the spectrum first and keeps it so. */
static void row_along_z(const struct field *f, int32_t j, int sign, double *from, double *to, struct lines *buffers)
{
    for (int32_t i = 0; i < f->nx; i += WIDTH) {
        size_t corner = 2 * ((size_t)j * f->row + (size_t)i);
        for (int32_t k = 0; k < f->nz; k++) {
            double *place = from + corner + 2 * (size_t)k * f->plane;
            if (sign < 0)
                fade(place, f->decay[0] + i, f->decay[1][j] * f->decay[2][k]);
            load(&buffers[0], k, place);
        }
        const struct lines *result = fft(&f->roots, f->nz, sign, &buffers[0], &buffers[1]);
        for (int32_t k = 0; k < f->nz; k++)
            store(result, k, to + corner + 2 * (size_t)k * f->plane);
    }
}

static void along_z(const struct field *f, int sign, double *from, double *to)
{
#pragma omp parallel
    {
        struct lines buffers[2];
#pragma omp for schedule(static)
        for (int32_t j = 0; j < f->ny; j++)
            row_along_z(f, j, sign, from, to, buffers);
    }
}

static void plane_along_y(const struct field *f, int sign, double *plane, struct lines *buffers)
{
    for (int32_t i = 0; i < f->nx; i += WIDTH) {
        for (int32_t j = 0; j < f->ny; j++)
            load(&buffers[0], j, plane + 2 * ((size_t)j * f->row + (size_t)i));
        const struct lines *result = fft(&f->roots, f->ny, sign, &buffers[0], &buffers[1]);
        for (int32_t j = 0; j < f->ny; j++)
            store(result, j, plane + 2 * ((size_t)j * f->row + (size_t)i));
    }
}

/* Here the lines lie one after the other: they are turned on the way. */
static void plane_along_x(const struct field *f, int sign, double *plane, struct lines *buffers)
{
    for (int32_t j = 0; j < f->ny; j += WIDTH) {
        double *rows = plane + 2 * (size_t)j * f->row;
        for (int32_t l = 0; l < WIDTH; l++)
            for (int32_t i = 0; i < f->nx; i++) {
                buffers[0].re[i * WIDTH + l] = rows[2 * ((size_t)l * f->row + (size_t)i)];
                buffers[0].im[i * WIDTH + l] = rows[2 * ((size_t)l * f->row + (size_t)i) + 1];
            }
        const struct lines *result = fft(&f->roots, f->nx, sign, &buffers[0], &buffers[1]);
        for (int32_t l = 0; l < WIDTH; l++)
            for (int32_t i = 0; i < f->nx; i++) {
                rows[2 * ((size_t)l * f->row + (size_t)i)] = result->re[i * WIDTH + l];
                rows[2 * ((size_t)l * f->row + (size_t)i) + 1] = result->im[i * WIDTH + l];
            }
    }
}

static void along_planes(const struct field *f, int sign, double *x)
{
#pragma omp parallel
    {
        struct lines buffers[2];
#pragma omp for schedule(static)
        for (int32_t k = 0; k < f->nz; k++) {
            double *plane = x + 2 * (size_t)k * f->plane;
            plane_along_y(f, sign, plane, buffers);
            plane_along_x(f, sign, plane, buffers);
        }
    }
}

void field_start(const struct field *f)
{
    set_random(f);
    along_planes(f, 1, f->state);
    along_z(f, 1, f->state, f->spectrum);
}

void field_round(const struct field *f)
{
    along_z(f, -1, f->spectrum, f->state);
    along_planes(f, -1, f->state);
}

/* 1024 places; few enough for one thread, whose order of additions is always the same. */
void field_checksum(const struct field *f, double sum[2])
{
    double points = (double)f->nx * (double)f->ny * (double)f->nz;
    sum[0] = sum[1] = 0.0;
    for (int32_t j = 1; j <= 1024; j++) {
        size_t place = (size_t)(5 * j % f->nz) * f->plane + (size_t)(3 * j % f->ny) * f->row + (size_t)(j % f->nx);
        sum[0] += f->state[2 * place];
        sum[1] += f->state[2 * place + 1];
    }
    sum[0] /= points;
    sum[1] /= points;
}
