/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model.h"

#include <math.h>

#define BOND 1.012                          /* angstrom */
#define BOND_STIFFNESS 1059.162             /* kcal/mol/angstrom^2 */
#define ANGLE (113.24 * 3.14159265358979323846 / 180.0)
#define ANGLE_STIFFNESS 75.90               /* kcal/mol/rad^2 */
#define SIGMA 3.165492                      /* angstrom */
#define EPSILON 0.1554253                   /* kcal/mol */
#define CHARGE 0.41                         /* of a hydrogen; the oxygen has -2 of it */
#define COULOMB 332.06371                   /* kcal angstrom/mol/charge^2 */
#define SWITCH_AT 0.9                       /* of the cutoff (ours) */

const double site_mass[SITES] = {15.9994, 1.008, 1.008};
static const double charge[SITES] = {-2.0 * CHARGE, CHARGE, CHARGE};

struct model model_make(double box, double cutoff)
{
    struct model m = {.box = box, .end_square = cutoff * cutoff};
    m.switch_square = SWITCH_AT * SWITCH_AT * m.end_square;
    return m;
}

static double dot(const double *u, const double *v)
{
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
}

/* Factor of the energy at squared distance x, and its derivative by x: twice differentiable. */
static double switching(const struct model *m, double x, double *derivative)
{
    double width = m->end_square - m->switch_square, t = (x - m->switch_square) / width;
    *derivative = 0.0;
    if (t <= 0.0)
        return 1.0;
    *derivative = -30.0 * t * t * (1.0 - t) * (1.0 - t) / width;
    return 1.0 - t * t * t * (10.0 - 15.0 * t + 6.0 * t * t);
}

/* Energy of the two oxygens' attraction and repulsion at squared distance x; *pull is -2 dV/dx. */
static double lennard_jones(double x, double *pull)
{
    double inverse = SIGMA * SIGMA / x, sixth = inverse * inverse * inverse;
    *pull = 24.0 * EPSILON * (2.0 * sixth * sixth - sixth) / x;
    return 4.0 * EPSILON * (sixth * sixth - sixth);
}

double pair_energy(const struct model *m, sites a, sites b, sites force_a, sites force_b)
{
    double image[3], apart[3];
    for (int c = 0; c < 3; c++) {
        double d = a[0][c] - b[0][c];
        image[c] = m->box * rint(d / m->box);
        apart[c] = d - image[c];
    }
    double square = dot(apart, apart);
    if (square >= m->end_square)
        return 0.0;
    double derivative, factor = switching(m, square, &derivative), energy = 0.0;
    for (int i = 0; i < SITES; i++)
        for (int j = 0; j < SITES; j++) {
            double d[3], pull = 0.0;
            for (int c = 0; c < 3; c++)
                d[c] = a[i][c] - b[j][c] - image[c];
            double x = dot(d, d), coulomb = COULOMB * charge[i] * charge[j] / sqrt(x);
            if (i == 0 && j == 0)
                energy += lennard_jones(x, &pull);
            energy += coulomb;
            pull = factor * (pull + coulomb / x);
            for (int c = 0; c < 3; c++) {
                force_a[i][c] += pull * d[c];
                force_b[j][c] -= pull * d[c];
            }
        }
    for (int c = 0; c < 3; c++) {
        double switched = 2.0 * energy * derivative * apart[c];
        force_a[0][c] -= switched;
        force_b[0][c] += switched;
    }
    return factor * energy;
}

/* A bond from the oxygen to hydrogen h, `arm` long and in that direction. */
static double bond_energy(const double *arm, double length, int h, sites force)
{
    double stretch = length - BOND;
    for (int c = 0; c < 3; c++) {
        double pull = BOND_STIFFNESS * stretch * arm[c] / length;
        force[h][c] -= pull;
        force[0][c] += pull;
    }
    return 0.5 * BOND_STIFFNESS * stretch * stretch;
}

double inner_energy(sites a, sites force)
{
    double u[3], v[3];
    for (int c = 0; c < 3; c++) {
        u[c] = a[1][c] - a[0][c];
        v[c] = a[2][c] - a[0][c];
    }
    double lu = sqrt(dot(u, u)), lv = sqrt(dot(v, v)), cosine = dot(u, v) / (lu * lv);
    double energy = bond_energy(u, lu, 1, force) + bond_energy(v, lv, 2, force);
    double bend = acos(cosine) - ANGLE, torque = ANGLE_STIFFNESS * bend / sqrt(1.0 - cosine * cosine);
    for (int c = 0; c < 3; c++) {
        double on_u = torque * (v[c] / (lu * lv) - cosine * u[c] / (lu * lu));
        double on_v = torque * (u[c] / (lu * lv) - cosine * v[c] / (lv * lv));
        force[1][c] += on_u;
        force[2][c] += on_v;
        force[0][c] -= on_u + on_v;
    }
    return energy + 0.5 * ANGLE_STIFFNESS * bend * bend;
}

void molecule_at_rest(sites a)
{
    for (int s = 0; s < SITES; s++)
        for (int c = 0; c < 3; c++)
            a[s][c] = 0.0;
    for (int h = 1; h < SITES; h++) {
        a[h][0] = BOND * cos(0.5 * ANGLE);
        a[h][1] = (h == 1 ? BOND : -BOND) * sin(0.5 * ANGLE);
    }
}
