/* Exact flow: the isentropic vortex between two cylinders, u ~ 1/r (Aftosmis, Gaitonde and Tavares,
 * AIAA 94-0415, there in two dimensions and supersonic throughout). A constant velocity along the
 * axis is added: the flow stays a solution and becomes a helix. With the numbers here it is
 * supersonic inside, subsonic outside.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "flow.h"

#include <math.h>

#define INNER_MACH 1.2 /* around the axis, at radius 1, where density and speed of sound are 1 */
#define AXIAL_SPEED 0.4
#define MIDDLE_RADIUS 1.5

static void vortex(double radius, const double point[3], double state[VARIABLES])
{
    double distance = sqrt(point[0] * point[0] + point[1] * point[1]);
    double speed = INNER_MACH / radius;
    double sound_squared = 1.0 + 0.5 * (GAMMA - 1.0) * (INNER_MACH * INNER_MACH - speed * speed);
    state[DENSITY] = pow(sound_squared, 1.0 / (GAMMA - 1.0));
    state[VELOCITY] = speed * point[1] / distance;
    state[VELOCITY + 1] = -speed * point[0] / distance;
    state[VELOCITY + 2] = AXIAL_SPEED;
    state[PRESSURE] = state[DENSITY] * sound_squared / GAMMA;
}

void flow_exact(const double point[3], double state[VARIABLES])
{
    vortex(sqrt(point[0] * point[0] + point[1] * point[1]), point, state);
}

void flow_start(const double point[3], double state[VARIABLES])
{
    vortex(MIDDLE_RADIUS, point, state);
}
