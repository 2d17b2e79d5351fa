/* The gas: its state, and the flow that is known exactly.
 *
 * A state is kept in primitive variables (density, three velocities, pressure): a split flux needs
 * these, and a Newton step in them cannot turn a positive pressure negative by a small change of
 * the momentum.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_MG_FLOW_H
#define I_MG_FLOW_H

#define VARIABLES 5
#define GAMMA 1.4

enum { DENSITY, VELOCITY, PRESSURE = VELOCITY + 3 };

/* The isentropic vortex that verifies the solution, at (x, y, z). */
void flow_exact(const double point[3], double state[VARIABLES]);

/* Its speed and density at mid-channel, turned into the direction of the exact flow: where
 * iterating starts. */
void flow_start(const double point[3], double state[VARIABLES]);

#endif
