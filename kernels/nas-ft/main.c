/* nas-ft: a diffusion equation in three dimensions by fast Fourier transforms, after NAS FT.
 *
 * After the specification: D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007; class W as in
 * NPB 2 and 3.
 *
 * Placement. Two complex fields. With `--init parallel` each thread touches first the planes
 * (constant z) that it transforms along y and x; with `--init serial` the initial thread touches
 * all. The initial state and its transform are then made once untimed, which moves nothing. The
 * transform along z deals rows of constant y over the threads: whatever the placement, most of what
 * it touches is then remote. `--next-touch` is asked at the top of round 0.
 *
 * The benchmark's clock also covers the initial state and its transform: that is the report's
 * benchmark section.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "field.h"
#include "homenode.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>

static double bytes(int64_t size, int letter)
{
    struct field f = field_shape(size, letter);
    return 2.0 * (double)field_bytes(&f);
}

static const struct kernel_about about = {
    .name = "nas-ft",
    .summary = "NAS FT, a diffusion equation by 3-D fast Fourier transforms",
    .size_meaning = "points of the grid, a power of two (three edges as equal as can be)",
    .classes_from = "of the NAS Parallel Benchmarks",
    .example = "nas-ft --class W --threads 4 --init serial --next-touch",
    .classes = {{'S', 262144, 6}, {'W', 524288, 6}, {'A', 8388608, 6}, {'B', 33554432, 20}},
    .default_class = 'A',
    .least_size = 4096,
    .most_size = INT64_C(1) << 31,
    .power_of_two = 1,
    .bytes = bytes,
};

static void mark_next_touch(const struct field *f)
{
    kernel_note_next_touch(hn_next_touch(f->spectrum, field_bytes(f)));
    kernel_note_next_touch(hn_next_touch(f->state, field_bytes(f)));
}

static void iterate(const struct field *f, const struct kernel_options *options, double (*sums)[2])
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            mark_next_touch(f);
        field_round(f);
        field_checksum(f, sums[k]);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

static int verify(const struct kernel_options *options, double (*sums)[2])
{
    double last = sums[options->iterations - 1][0], worst = 0.0;
    if (!options->class_letter)
        return kernel_not_verified("non-standard size", "last checksum, real part", last);
    if (!options->standard_iterations)
        return kernel_not_verified("non-standard iterations", "last checksum, real part", last);
    const double (*expected)[2] = official_checksums(options->class_letter);
    for (int32_t k = 0; k < options->iterations; k++)
        for (int part = 0; part < 2; part++) {
            double error = fabs(sums[k][part] / expected[k][part] - 1.0);
            worst = error > worst || isnan(error) ? error : worst;
        }
    return kernel_verify_bound("largest relative deviation of the checksums", worst, 1e-12);
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    double(*sums)[2] = kernel_allocate((size_t)options.iterations, sizeof *sums, "the checksums");
    struct field f = field_shape(options.size, options.class_letter);
    field_allocate(&f);
    field_clear(&f, options.serial_init);
    field_start(&f); /* untimed, as in the benchmark */
    kernel_begin_section();
    field_start(&f);
    iterate(&f, &options, sums);
    status = verify(&options, sums);
    field_free(&f);
    free(sums);
    return status;
}
