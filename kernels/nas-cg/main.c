/* nas-cg: the smallest eigenvalue of a large, sparse, random matrix by inverse iteration.
 *
 * After the specification: D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007 (March 1994),
 * and NAS-95-020 (NPB 2.0) for class W; what this rests on is said in ../README.md. Löf, Nordén and
 * Holmgren use class B.
 *
 * Placement. With `--init parallel` each thread touches first the rows that it multiplies (matrix
 * and vectors, one static schedule over rows); with `--init serial` the initial thread builds
 * everything; with `--init npb` first touch is that of NPB 3.0's OpenMP version (matrix.h). The
 * benchmark's untimed first round runs in all cases after that, so it moves nothing. `--next-touch`
 * is asked at the top of the first timed round, where Löf put it, so the cost falls into it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "homenode.h"
#include "options.h"
#include "report.h"
#include "solve.h"

static double bytes(int64_t size, int letter);

static const struct kernel_about about = {
    .name = "nas-cg",
    .summary = "NAS CG, conjugate gradients on a random sparse matrix",
    .size_meaning = "rows of the matrix",
    .classes_from = "of the NAS Parallel Benchmarks",
    .example = "nas-cg --class A --threads 4 --init serial --next-touch",
    .classes = {{'S', 1400, 15}, {'W', 7000, 15}, {'A', 14000, 15}, {'B', 75000, 75}},
    .default_class = 'A',
    .least_size = 100,
    .most_size = 5000000, /* entries are counted in 32 bits */
    .extras = EXTRA_NPB,
    .bytes = bytes,
};

struct problem {
    char letter;
    int nonzeros;
    double shift, zeta;
};

static const struct problem problems[KERNEL_CLASSES] = {
    {'S', 7, 10.0, 8.5971775078648},
    {'W', 8, 12.0, 10.362595087124},
    {'A', 11, 20.0, 17.130235054029},
    {'B', 13, 60.0, 22.712745482631},
};

static const struct problem *problem_of_size(int64_t size)
{
    char letter = kernel_class_below(&about, size)->letter;
    for (int i = 0; i < KERNEL_CLASSES; i++)
        if (problems[i].letter == letter)
            return &problems[i];
    return &problems[0];
}

/* The matrix, at most (k + 1)^2 + 1 entries a row, those that fall on one place included (--init
 * npb has room for them); the random vectors that it is made of, k + 1 entries each, twice. */
static double bytes(int64_t size, int letter)
{
    (void)letter;
    double k = problem_of_size(size)->nonzeros;
    return (double)size * (12.0 * ((k + 1.0) * (k + 1.0) + 1.0) + 24.0 * (k + 1.0) + 60.0);
}

static void mark_next_touch(const struct solver *s)
{
    size_t n = (size_t)s->a.n, entries = (size_t)s->a.row_start[n];
    kernel_note_next_touch(hn_next_touch(s->a.row_start, (n + 1) * sizeof *s->a.row_start));
    kernel_note_next_touch(hn_next_touch(s->a.column, entries * sizeof *s->a.column));
    kernel_note_next_touch(hn_next_touch(s->a.value, entries * sizeof *s->a.value));
    double *const vectors[] = {s->x, s->z, s->p, s->q, s->r};
    for (int i = 0; i < 5; i++)
        kernel_note_next_touch(hn_next_touch(vectors[i], n * sizeof *vectors[i]));
}

static double iterate(struct solver *s, const struct kernel_options *options, double shift)
{
    double zeta = 0.0, residual;
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            mark_next_touch(s);
        zeta = shift + 1.0 / solver_round(s, &residual);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
    return zeta;
}

static int verify(const struct kernel_options *options, const struct problem *problem, double zeta)
{
    if (!options->class_letter)
        return kernel_not_verified("non-standard size", "zeta", zeta);
    if (!options->standard_iterations)
        return kernel_not_verified("non-standard iterations", "zeta", zeta);
    return kernel_verify_value("zeta", zeta, problem->zeta, 1e-10);
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    const struct problem *problem = problem_of_size(options.size);
    kernel_start(&about, &options);
    struct solver s = solver_make((int32_t)options.size, problem->nonzeros, problem->shift, &options);
    double residual;
    solver_round(&s, &residual); /* untimed, as in the benchmark */
    solver_reset(&s, options.serial_init);
    double zeta = iterate(&s, &options, problem->shift);
    solver_free(&s);
    return verify(&options, problem, zeta);
}
