/* Electrons that drift over a resting background: their start, and the constants of their motion.
 *
 * Source: C. K. Birdsall and A. B. Langdon, Plasma Physics via Computer Simulation (1985), chapters
 * 2 and 14: two-dimensional electrostatic particle-in-cell with linear weights. The numbers are
 * ours. A cell's edge and a round are the units of length and time, so a velocity is in cells a
 * round.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef PIC_PLASMA_H
#define PIC_PLASMA_H

#include <stdint.h>

#define PARTICLES_A_CELL 32
#define PLASMA_FREQUENCY 0.2 /* radians a round */
#define THERMAL_VELOCITY 0.1
#define DRIFT 0.25 /* along y: rows of cells a round */

/* Acceleration is the gradient of the potential, whose Laplacian is this times the number of
 * electrons more than the background's in a cell. */
#define CHARGE (PLASMA_FREQUENCY * PLASMA_FREQUENCY / PARTICLES_A_CELL)

struct particle {
    double x, y, vx, vy;
};

/* Particle i of a grid with m cells an edge, by its number only; sorted by rows of cells. */
struct particle plasma_start(int64_t m, int64_t i);

/* A place taken back into [0, m). */
double plasma_wrap(double x, double m);

/* One direction's part of the eigenvalue of the five-point Laplacian for wave number a, without its
 * sign. */
double plasma_stiffness(int64_t m, int64_t a);

/* The particles after some rounds by a serial program of its own; to be freed. */
struct particle *plasma_reference(int64_t m, int32_t rounds);

#endif
