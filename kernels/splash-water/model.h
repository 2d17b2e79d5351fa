/* The potential of flexible water molecules and its forces.
 *
 * Source: SPC/Fw, Y. Wu, H. L. Tepper and G. A. Voth, J. Chem. Phys. 124, 024503 (2006): harmonic
 * bonds and angle, Lennard-Jones between oxygens, charges on all three sites. WATER in SPLASH has
 * an older flexible potential; this one takes its place (ours), the work a pair is similar: nine
 * distances. All interactions of two molecules end together, by the distance of their oxygens,
 * multiplied by a polynomial of fifth degree that goes from one to zero with two continuous
 * derivatives (ours), so that energy and momentum are conserved.
 *
 * Units: angstrom, femtosecond, g/mol, kcal/mol.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WATER_MODEL_H
#define WATER_MODEL_H

#define SITES 3 /* O, H, H */

/* kcal/mol in g/mol (angstrom/fs)^2. */
#define ENERGY_UNIT 4.184e-4

typedef double sites[SITES][3];

struct model {
    double box;                      /* edge of the periodic cube */
    double switch_square, end_square; /* squared distances of oxygens where switching begins and ends */
};

extern const double site_mass[SITES];

struct model model_make(double box, double cutoff);

/* Energy of two molecules, each taken where the other is nearest. Adds the forces on both. */
double pair_energy(const struct model *m, sites a, sites b, sites force_a, sites force_b);

/* Energy inside a molecule. Adds the forces. */
double inner_energy(sites a, sites force);

/* Places for a molecule whose angle and bonds are at rest, oxygen at the origin. */
void molecule_at_rest(sites a);

#endif
