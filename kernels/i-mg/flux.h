/* The split flux through a face, in a header so that a cell's work stays in registers.
 *
 * B. van Leer, Flux-vector splitting for the Euler equations, ICASE 82-30 (Lecture Notes in Physics
 * 170, 1982), in the form for a face of any direction of Anderson, Thomas and van Leer, AIAA
 * Journal 24 (1986) 1453. It is once differentiable through the speed of sound, which Newton's
 * method wants.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_MG_FLUX_H
#define I_MG_FLUX_H

#include "flow.h"

#include <math.h>

/* Compilers find these too long to inline, and then keep a face's numbers in memory: half of all
 * accesses. */
#define FACE_WORK static inline __attribute__((always_inline))

/* What a face sees of a state. */
struct face {
    double area, normal[3];
    double sound, along; /* speed of sound, velocity along the normal */
};

static inline struct face face_of(const double state[VARIABLES], const double area[3])
{
    struct face f;
    f.area = sqrt(area[0] * area[0] + area[1] * area[1] + area[2] * area[2]);
    for (int d = 0; d < 3; d++)
        f.normal[d] = area[d] / f.area;
    f.sound = sqrt(GAMMA * state[PRESSURE] / state[DENSITY]);
    f.along = state[VELOCITY] * f.normal[0] + state[VELOCITY + 1] * f.normal[1] + state[VELOCITY + 2] * f.normal[2];
    return f;
}

static inline double square_of_speed(const double state[VARIABLES])
{
    return state[VELOCITY] * state[VELOCITY] + state[VELOCITY + 1] * state[VELOCITY + 1] +
           state[VELOCITY + 2] * state[VELOCITY + 2];
}

enum regime { NOTHING_LEAVES, SUBSONIC, ALL_LEAVES };

/* Per unit of area: momentum is mass * velocity + push * normal, energy is mass * heat. */
struct waves {
    double mass, push, heat;
};

static inline enum regime split(const double state[VARIABLES], const struct face *f, struct waves *w)
{
    if (f->along <= -f->sound)
        return NOTHING_LEAVES;
    double squared = square_of_speed(state);
    if (f->along >= f->sound) {
        w->mass = state[DENSITY] * f->along;
        w->push = state[PRESSURE];
        w->heat = f->sound * f->sound / (GAMMA - 1.0) + 0.5 * squared;
        return ALL_LEAVES;
    }
    double sum = f->along + f->sound, both = (GAMMA - 1.0) * f->along + 2.0 * f->sound;
    w->mass = 0.25 * state[DENSITY] * sum * sum / f->sound;
    w->push = w->mass * (2.0 * f->sound - f->along) / GAMMA;
    w->heat = both * both / (2.0 * (GAMMA * GAMMA - 1.0)) + 0.5 * (squared - f->along * f->along);
    return SUBSONIC;
}

static inline void add_flux(const double state[VARIABLES], const struct face *f, const struct waves *w, double area,
                            double flux[VARIABLES])
{
    double mass = area * w->mass, push = area * w->push;
    flux[0] += mass;
    for (int d = 0; d < 3; d++)
        flux[1 + d] += mass * state[VELOCITY + d] + push * f->normal[d];
    flux[4] += mass * w->heat;
}

/* flux += the part of the flux through a face that leaves with the waves going along `area` (the
 * face's normal times its area). With `area` reversed, the neighbour's state and sign -1 it is the
 * part that enters. */
FACE_WORK void flux_add(const double state[VARIABLES], const double area[3], double sign, double flux[VARIABLES])
{
    struct face f = face_of(state, area);
    struct waves w;
    if (split(state, &f, &w) != NOTHING_LEAVES)
        add_flux(state, &f, &w, sign * f.area, flux);
}

/* The derivatives of a `struct waves` by the five variables. */
struct derivatives {
    double mass[VARIABLES], push[VARIABLES], heat[VARIABLES];
};

/* The speed of sound a obeys a^2 = gamma p / rho. */
static inline void differentiate_subsonic(const double state[VARIABLES], const struct face *f, double mass,
                                          struct derivatives *d)
{
    double by_sound[VARIABLES] = {-0.5 * f->sound / state[DENSITY], 0.0, 0.0, 0.0, 0.5 * f->sound / state[PRESSURE]};
    double by_along[VARIABLES] = {0.0, f->normal[0], f->normal[1], f->normal[2], 0.0};
    double sum = f->along + f->sound, w = (GAMMA - 1.0) * f->along + 2.0 * f->sound;
    double pressing = (2.0 * f->sound - f->along) / GAMMA;
    double slope = 0.5 * state[DENSITY] * sum / f->sound;
    for (int v = 0; v < VARIABLES; v++) {
        d->mass[v] = slope * (by_along[v] + by_sound[v]) - mass * by_sound[v] / f->sound;
        if (v == DENSITY)
            d->mass[v] += mass / state[DENSITY];
        d->push[v] = d->mass[v] * pressing + mass * (2.0 * by_sound[v] - by_along[v]) / GAMMA;
        d->heat[v] = w * ((GAMMA - 1.0) * by_along[v] + 2.0 * by_sound[v]) / (GAMMA * GAMMA - 1.0) -
                     f->along * by_along[v];
    }
}

static inline void differentiate_supersonic(const double state[VARIABLES], const struct face *f, struct derivatives *d)
{
    double squared = f->sound * f->sound / (GAMMA - 1.0);
    *d = (struct derivatives){.mass = {f->along}, .push = {[PRESSURE] = 1.0}, .heat = {-squared / state[DENSITY]}};
    for (int k = 0; k < 3; k++)
        d->mass[VELOCITY + k] = state[DENSITY] * f->normal[k];
    d->heat[PRESSURE] = squared / state[PRESSURE];
}

/* The same, and jacobian[equation][variable] += its derivative by the state. */
FACE_WORK void flux_add_with_jacobian(const double state[VARIABLES], const double area[3], double flux[VARIABLES],
                                      double jacobian[VARIABLES][VARIABLES])
{
    struct face f = face_of(state, area);
    struct waves w;
    struct derivatives d;
    enum regime regime = split(state, &f, &w);
    if (regime == NOTHING_LEAVES)
        return;
    if (regime == SUBSONIC)
        differentiate_subsonic(state, &f, w.mass, &d);
    else
        differentiate_supersonic(state, &f, &d);
    for (int k = 0; k < 3; k++)
        d.heat[VELOCITY + k] += state[VELOCITY + k];
    add_flux(state, &f, &w, f.area, flux);
    for (int v = 0; v < VARIABLES; v++) {
        double mass = d.mass[v] * f.area, push = d.push[v] * f.area;
        jacobian[0][v] += mass;
        jacobian[4][v] += mass * w.heat + f.area * w.mass * d.heat[v];
        for (int k = 0; k < 3; k++)
            jacobian[1 + k][v] += mass * state[VELOCITY + k] + push * f.normal[k];
    }
    for (int k = 0; k < 3; k++)
        jacobian[1 + k][VELOCITY + k] += f.area * w.mass;
}

#endif
