/* i-cg: Maxwell's equations around a body, edge elements on tetrahedra, one implicit time step by
 * conjugate gradients.
 *
 * It stands for I-CG of Löf, Nordén and Holmgren (section 3: Maxwell's equations around a fighter
 * jet, an unstructured mesh, 1 794 058 unknowns, density 0.0009 %, 47 iterations). Their mesh is
 * not public: here a cube stands for the jet, see mesh.c; the equations are in elements.c. A round
 * is a step of conjugate gradients.
 *
 * The matrix goes through a file, as in the paper, which is why its authors could not initialise it
 * in parallel: the program makes the mesh, writes the system to a file and forgets everything, then
 * the initial thread reads it.
 *
 * Placement. With `--init serial` the initial thread alone touches matrix and vectors; with
 * `--init parallel`, which the paper does not have, each thread first touches the rows that it
 * multiplies, then the initial thread reads into them. `--next-touch` is asked at the top of round
 * 0 for all arrays.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L
#include "elements.h"
#include "homenode.h"
#include "matrix.h"
#include "mesh.h"
#include "options.h"
#include "order.h"
#include "report.h"
#include "solve.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define USAGE 2
#define RESIDUAL 1e-6    /* after the standard steps */
#define FIELD_ERROR 0.01 /* of the unknowns, times (12 / cells)^2 */

/* At the peak the mesh and the assembled matrix are both there; per cell 7 edges, 115 entries, 6
 * tetrahedra. */
static double bytes(int64_t size, int letter)
{
    const double entries = 115.0 * 12.0, tetrahedra = 6.0 * (16.0 + 24.0 + 24.0), edges = 7.0 * (8.0 + 4.0 + 6.0 * 8.0);
    (void)letter;
    return (entries + tetrahedra + edges) * (double)size * (double)size * (double)size;
}

static const struct kernel_about about = {
    .name = "i-cg",
    .summary = "Maxwell's equations, edge elements on tetrahedra, conjugate gradients",
    .size_meaning = "cells an edge of the box around the body",
    .classes_from = "cells an edge; B has the paper's number of unknowns",
    .example = "i-cg --class A --threads 4 --init serial --next-touch",
    .classes = {{'S', 12, 47}, {'W', 20, 47}, {'A', 36, 47}, {'B', 66, 47}},
    .default_class = 'A',
    .least_size = 4,
    .most_size = 256, /* entries are counted in 32 bits */
    .extras = EXTRA_ORDER | EXTRA_MATRIX,
    .bytes = bytes,
};

static int refuse(const char *what, const char *file, const char *why)
{
    fprintf(stderr, "%s: %s '%s': %s; nothing was run\n", about.name, what, file, why);
    return USAGE;
}

static double *unknowns_of(const struct mesh *m, const double *field)
{
    double *out = kernel_allocate((size_t)m->unknowns, sizeof *out, "the expected solution");
    for (int32_t e = 0; e < m->edges; e++)
        if (m->unknown[e] >= 0)
            out[m->unknown[e]] = field[e];
    return out;
}

/* The step from time 0; what is expected is the wave itself. */
static struct linear_system make_system(int32_t cells)
{
    double step = time_step(cells), weight = 0.25 * step * step;
    struct mesh m = mesh_make(cells);
    size_t edges = (size_t)m.edges;
    struct linear_system s = {.cells = cells, .a = assemble(&m, weight)};
    double *before = kernel_allocate(edges, sizeof *before, "fields"), *now = kernel_allocate(edges, sizeof *now, "fields"),
           *next = kernel_allocate(edges, sizeof *next, "fields");
    wave_on_edges(&m, -step, before);
    wave_on_edges(&m, 0.0, now);
    wave_on_edges(&m, step, next);
    s.right = kernel_allocate((size_t)m.unknowns, sizeof *s.right, "the right-hand side");
    right_hand_side(&m, weight, before, now, next, s.right);
    s.expected = unknowns_of(&m, next);
    free(before);
    free(now);
    free(next);
    mesh_free(&m);
    return s;
}

/* Where the file is written: beside the wanted one, which it replaces when it is complete; or a
 * file in $TMPDIR or /tmp that has no name any more, so it is gone when the program ends, however
 * it ends. */
static FILE *open_temporary(const char *wanted, char *name, size_t length)
{
    const char *folder = getenv("TMPDIR");
    if (wanted)
        snprintf(name, length, "%s.XXXXXX", wanted);
    else
        snprintf(name, length, "%s/i-cg-XXXXXX", folder && *folder ? folder : "/tmp");
    int file = mkstemp(name);
    if (file < 0)
        return NULL;
    if (!wanted)
        unlink(name);
    return fdopen(file, "w+b");
}

/* A device or a folder must not be replaced by a file. */
static int is_no_plain_file(const char *name)
{
    struct stat there;
    return !stat(name, &there) && !S_ISREG(there.st_mode);
}

/* Makes the system and writes it; gives the file, or null after a sentence. */
static FILE *write_system(int32_t cells)
{
    char name[4096];
    const char *wanted = kernel_text_option("--save");
    if (wanted && is_no_plain_file(wanted)) {
        refuse("cannot create the matrix file", wanted, "something else has this name");
        return NULL;
    }
    FILE *file = open_temporary(wanted, name, sizeof name);
    if (!file) {
        refuse("cannot create the matrix file", wanted ? wanted : name, strerror(errno));
        return NULL;
    }
    struct linear_system s = make_system(cells);
    int code = system_write(file, &s);
    system_free(&s);
    if (!code && wanted && (chmod(name, 0644) || rename(name, wanted)))
        code = errno;
    if (!code)
        return file;
    refuse("cannot write the matrix file", wanted ? wanted : name, strerror(code));
    fclose(file);
    if (wanted)
        unlink(name);
    return NULL;
}

/* Gives KERNEL_RUN, or the exit status after a sentence. */
static int get_system(struct kernel_options *options, struct linear_system *s)
{
    const char *given = kernel_text_option("--matrix");
    FILE *file = given ? fopen(given, "rb") : write_system((int32_t)options->size);
    if (!file)
        return given ? refuse("cannot read the matrix file", given, strerror(errno)) : USAGE;
    const char *wrong = system_read(file, s, !options->serial_init && !options->round_robin);
    fclose(file);
    if (wrong)
        return refuse("cannot use the matrix file", given ? given : "(just written)", wrong);
    if (given && options->size != s->cells) {
        options->class_letter = 0;
        options->size = s->cells;
    }
    return KERNEL_RUN;
}

static void mark_next_touch(const struct linear_system *s, const struct solver *c)
{
    size_t n = (size_t)s->a.n, entries = (size_t)s->a.entries;
    kernel_note_next_touch(hn_next_touch(s->a.row_start, (n + 1) * sizeof *s->a.row_start));
    kernel_note_next_touch(hn_next_touch(s->a.column, entries * sizeof *s->a.column));
    kernel_note_next_touch(hn_next_touch(s->a.value, entries * sizeof *s->a.value));
    double *const vectors[] = {c->x, c->r, c->p, c->q};
    for (int i = 0; i < 4; i++)
        kernel_note_next_touch(hn_next_touch(vectors[i], n * sizeof *vectors[i]));
}

static void iterate(const struct linear_system *s, struct solver *c, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            mark_next_touch(s, c);
        solver_step(c);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

static double distance(const struct linear_system *s, const double *x)
{
    double error = 0.0, size = 0.0;
    for (int32_t i = 0; i < s->a.n; i++) {
        error += (x[i] - s->expected[i]) * (x[i] - s->expected[i]);
        size += s->expected[i] * s->expected[i];
    }
    return sqrt(error / size);
}

static int verify(const struct linear_system *s, const struct solver *c, const struct kernel_options *options)
{
    double residual = true_residual(c, s->right);
    if (!options->standard_iterations)
        return kernel_not_verified("non-standard iterations", "residual", residual);
    const struct kernel_bound bounds[] = {
        {"relative residual", residual, RESIDUAL},
        {"field error", distance(s, c->x), FIELD_ERROR * 144.0 / (double)(options->size * options->size)},
        {"steps with p'Ap <= 0", c->negative, 0.0},
    };
    return kernel_verify_bounds(bounds, 3);
}

/* Otherwise malloc hands out the mesh's memory again, whose pages the initial thread has touched;
 * so it goes back to the system. */
static void give_memory_back(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
#endif
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    struct linear_system s;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    if (kernel_text_option("--matrix") && (kernel_text_option("--save") || kernel_text_option("--verify"))) {
        fprintf(stderr, "i-cg: --matrix reads a system: --save and --verify make one; nothing was run\n");
        return USAGE;
    }
    give_memory_back();
    kernel_start(&about, &options);
    if (kernel_text_option("--verify"))
        return verify_order(&options);
    status = get_system(&options, &s);
    if (status != KERNEL_RUN)
        return status;
    kernel_note_count("unknowns", s.a.n);
    kernel_note_count("entries", s.a.entries);
    struct solver c = solver_make(&s.a, options.threads, options.serial_init);
    solver_begin(&c, s.right, options.serial_init);
    iterate(&s, &c, &options);
    status = verify(&s, &c, &options);
    solver_free(&c);
    system_free(&s);
    return status;
}
