/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "water.h"

#include "homenode.h"
#include "noise.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>

#define TIME_STEP 0.5                  /* fs; an O-H vibration takes about 9 */
#define VOLUME 30.0                    /* cubic angstroms a molecule: 1 g/cm^3 */
#define THERMAL (0.0019872 * 300.0)    /* kcal/mol */
#define NUMBERS 128                    /* of noise for each molecule */
#define NORMAL_TERMS 12                /* uniform numbers that add up to variance 1 */
#define SAMPLES 8
#define DIFFERENCE 1e-3                /* angstrom */

static int64_t lattice_edge(int64_t count)
{
    return (int64_t)(cbrt((double)count) + 0.5);
}

int water_check(const struct kernel_about *about, const struct kernel_options *options)
{
    int64_t edge = lattice_edge(options->size);
    if (edge * edge * edge != options->size)
        return kernel_refuse(about, "--size %lld: not a cube (343, 512, 729, ...), so the molecules form no lattice",
                             (long long)options->size);
    return KERNEL_RUN;
}

double water_box(int64_t count)
{
    return cbrt(VOLUME * (double)count);
}

struct water water_make(const struct kernel_options *options, double cutoff)
{
    struct water w = {.count = options->size, .edge = lattice_edge(options->size), .threads = options->threads};
    size_t count = (size_t)w.count, threads = (size_t)w.threads;
    w.model = model_make(water_box(w.count), cutoff);
    w.molecule = kernel_allocate_aligned(_Alignof(struct molecule), count, sizeof *w.molecule, "the molecules");
    w.part = kernel_allocate_aligned(_Alignof(struct energy), threads, sizeof *w.part, "the energies' parts");
    w.total = kernel_allocate((size_t)options->iterations + 1, sizeof *w.total, "the energies");
    return w;
}

void water_free(struct water *w)
{
    free(w->molecule);
    free(w->part);
    free(w->total);
}

void water_lattice(const struct water *w, int64_t i, double *place)
{
    double spacing = w->model.box / (double)w->edge;
    place[0] = spacing * ((double)(i % w->edge) + 0.5);
    place[1] = spacing * ((double)(i / w->edge % w->edge) + 0.5);
    place[2] = spacing * ((double)(i / (w->edge * w->edge)) + 0.5);
}

/* Turns a vector by an angle about axis `c`. */
static void turn(double *v, int c, double angle)
{
    double *x = &v[(c + 1) % 3], *y = &v[(c + 2) % 3], x0 = *x, y0 = *y;
    *x = cos(angle) * x0 - sin(angle) * y0;
    *y = sin(angle) * x0 + cos(angle) * y0;
}

static double normal(uint64_t *place)
{
    double sum = 0.0;
    for (int k = 0; k < NORMAL_TERMS; k++)
        sum += noise((*place)++);
    return sum;
}

void water_start(const struct water *w, int64_t i)
{
    struct molecule *m = &w->molecule[i];
    uint64_t number = (uint64_t)i * NUMBERS;
    double lattice[3], angle[3];
    water_lattice(w, i, lattice);
    molecule_at_rest(m->place);
    for (int c = 0; c < 3; c++)
        angle[c] = 6.283185307179586 * noise(number++);
    for (int s = 0; s < SITES; s++) {
        double speed = sqrt(THERMAL / site_mass[s] * ENERGY_UNIT);
        for (int c = 0; c < 3; c++)
            turn(m->place[s], c, angle[c]);
        for (int c = 0; c < 3; c++) {
            m->place[s][c] += lattice[c];
            m->velocity[s][c] = speed * normal(&number);
            m->force[s][c] = 0.0;
        }
    }
}

/* Total momentum; *size is the sum of magnitudes. */
static void momentum(const struct water *w, double *total, double *size)
{
    total[0] = total[1] = total[2] = *size = 0.0;
    for (int64_t i = 0; i < w->count; i++)
        for (int s = 0; s < SITES; s++)
            for (int c = 0; c < 3; c++) {
                double p = site_mass[s] * w->molecule[i].velocity[s][c];
                total[c] += p;
                *size += fabs(p);
            }
}

void water_rest(const struct water *w)
{
    double total[3], size, mass = 0.0;
    momentum(w, total, &size);
    for (int s = 0; s < SITES; s++)
        mass += site_mass[s];
    for (int64_t i = 0; i < w->count; i++)
        for (int s = 0; s < SITES; s++)
            for (int c = 0; c < 3; c++)
                w->molecule[i].velocity[s][c] -= total[c] / (mass * (double)w->count);
}

static void kick(struct molecule *m)
{
    for (int s = 0; s < SITES; s++)
        for (int c = 0; c < 3; c++)
            m->velocity[s][c] += 0.5 * TIME_STEP * ENERGY_UNIT / site_mass[s] * m->force[s][c];
}

void water_move(struct molecule *m)
{
    kick(m);
    for (int s = 0; s < SITES; s++)
        for (int c = 0; c < 3; c++)
            m->place[s][c] += TIME_STEP * m->velocity[s][c];
}

static double kinetic_energy(const struct molecule *m)
{
    double sum = 0.0;
    for (int s = 0; s < SITES; s++)
        for (int c = 0; c < 3; c++)
            sum += 0.5 / ENERGY_UNIT * site_mass[s] * m->velocity[s][c] * m->velocity[s][c];
    return sum;
}

double water_kick(struct molecule *m)
{
    kick(m);
    return kinetic_energy(m);
}

double water_energy(const struct water *w)
{
    double sum = 0.0;
    for (int t = 0; t < w->threads; t++)
        sum += w->part[t].potential + w->part[t].kinetic;
    return sum;
}

/* The energy before the first round is that of its start: its kick has not been given. */
static double start_energy(const struct water *w)
{
    double sum = 0.0;
    for (int t = 0; t < w->threads; t++)
        sum += w->part[t].potential;
    for (int64_t i = 0; i < w->count; i++)
        sum += kinetic_energy(&w->molecule[i]);
    return sum;
}

void water_iterate(const struct water *w, const struct kernel_options *options, water_step *step, void *program)
{
    w->total[0] = start_energy(w);
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            kernel_note_next_touch(hn_next_touch(w->molecule, (size_t)w->count * sizeof *w->molecule));
        step(program);
        w->total[k + 1] = water_energy(w);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

/* Energy of one molecule and its interactions with all others, with nothing left out. */
static double energy_of(const struct water *w, int64_t i)
{
    sites force = {{0.0}};
    double sum = inner_energy(w->molecule[i].place, force);
    for (int64_t j = 0; j < w->count; j++)
        if (j != i)
            sum += pair_energy(&w->model, w->molecule[i].place, w->molecule[j].place, force, force);
    return sum;
}

/* -dV by a coordinate: differences of fourth order. */
static double force_by_differences(const struct water *w, int64_t i, int s, int c)
{
    double *x = &w->molecule[i].place[s][c], x0 = *x, at[4];
    for (int k = 0; k < 4; k++) {
        *x = x0 + DIFFERENCE * (k < 2 ? k - 2 : k - 1);
        at[k] = energy_of(w, i);
    }
    *x = x0;
    return -(at[0] - 8.0 * at[1] + 8.0 * at[2] - at[3]) / (12.0 * DIFFERENCE);
}

static double worse(double worst, double error)
{
    return error > worst || isnan(error) ? error : worst;
}

/* Relative to the sampled forces' root mean square. */
static double force_error(const struct water *w)
{
    double worst = 0.0, squares = 0.0;
    for (int k = 0; k < SAMPLES; k++) {
        int64_t i = (int64_t)(noise_bits((uint64_t)k) % (uint64_t)w->count);
        for (int s = 0; s < SITES; s++)
            for (int c = 0; c < 3; c++) {
                double force = w->molecule[i].force[s][c];
                worst = worse(worst, fabs(force_by_differences(w, i, s, c) - force));
                squares += force * force;
            }
    }
    return worst / sqrt(squares / (SAMPLES * SITES * 3));
}

/* Relative to the kinetic energy of 300 K, nine halves of kT a molecule. */
static double energy_drift(const struct water *w, int32_t rounds)
{
    double worst = 0.0, scale = 4.5 * THERMAL * (double)w->count;
    for (int32_t k = 1; k <= rounds; k++)
        worst = worse(worst, fabs(w->total[k] - w->total[0]) / scale);
    return worst;
}

int water_verify(const struct water *w, int32_t rounds)
{
    double total[3], size;
    momentum(w, total, &size);
    double moving = fmax(fabs(total[0]), fmax(fabs(total[1]), fabs(total[2]))) / size;
    const struct kernel_check checks[] = {
        {"energy drift", energy_drift(w, rounds), 0.01},
        {"momentum", moving, 1e-13 * sqrt(rounds + 1.0)},
        {"force against differences of the potential", force_error(w), 1e-6},
    };
    return kernel_verify_checks(checks, 3);
}
