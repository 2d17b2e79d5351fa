/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "plasma.h"

#include "noise.h"

#include <math.h>

#define PI 3.14159265358979323846
#define NUMBERS 32 /* of noise for each particle */
#define NORMAL_TERMS 12

/* Uniform numbers that add up to variance 1. */
static double normal(uint64_t *place)
{
    double sum = 0.0;
    for (int k = 0; k < NORMAL_TERMS; k++)
        sum += noise((*place)++);
    return sum;
}

struct particle plasma_start(int64_t m, int64_t i)
{
    uint64_t place = (uint64_t)i * NUMBERS;
    double row = (double)(i / (m * PARTICLES_A_CELL));
    struct particle p;
    p.x = (double)m * (0.5 + noise(place));
    p.y = row + 0.5 + noise(place + 1);
    place += 2;
    p.vx = THERMAL_VELOCITY * normal(&place);
    p.vy = DRIFT + THERMAL_VELOCITY * normal(&place);
    p.x = plasma_wrap(p.x, (double)m);
    p.y = plasma_wrap(p.y, (double)m);
    return p;
}

double plasma_wrap(double x, double m)
{
    if (x < 0.0)
        x += m;
    if (x >= m) /* rounding of the line above, too */
        x -= m;
    return x;
}

double plasma_stiffness(int64_t m, int64_t a)
{
    double half = sin(PI * (double)a / (double)m);
    return 4.0 * half * half;
}
