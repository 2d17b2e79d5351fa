/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "check.h"

#include "cycle.h"
#include "flux.h"

#include <math.h>

static double cell_error(const struct level *level, const struct block *b, int i, int j, int k)
{
    double point[3], exact[VARIABLES];
    cell_middle(level, b, i, j, k, point);
    flow_exact(point, exact);
    return fabs(b->state[state_at(level->n, i, j, k)][DENSITY] - exact[DENSITY]);
}

double density_error(const struct hierarchy *h)
{
    const struct level *level = &h->level[0];
    int n = level->n;
    double sum = 0.0, volume = 0.0;
    for (int b = 0; b < BLOCKS; b++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                for (int i = 0; i < n; i++) {
                    double part = level->block[b].volume[cell_at(n, i, j, k)];
                    sum += part * cell_error(level, &level->block[b], i, j, k);
                    volume += part;
                }
    return sum / volume;
}

/* Oblique, so that subsonic and supersonic faces of either direction occur. */
static const double uniform[VARIABLES] = {1.1, 0.9, 0.6, -0.7, 0.8};

static void fill_uniform(const struct level *level)
{
    size_t w = (size_t)level->n + 2;
    for (int b = 0; b < BLOCKS; b++)
        for (size_t c = 0; c < w * w * w; c++)
            for (int v = 0; v < VARIABLES; v++)
                level->block[b].state[c][v] = uniform[v];
}

/* Size of what passes through a face: each face has about the area of a side of the grid over
 * cells^2. */
static double face_flux(const struct level *level)
{
    double flux[VARIABLES] = {0.0}, sum = 0.0;
    double area[3] = {1.0 / level->cells / level->cells, 0.0, 0.0};
    flux_add(uniform, area, 1.0, flux);
    for (int v = 0; v < VARIABLES; v++)
        sum += flux[v] * flux[v];
    return sqrt(sum);
}

double uniform_flow_defect(struct hierarchy *h)
{
    fill_uniform(&h->level[0]);
    return residual_norm(h) / face_flux(&h->level[0]);
}
