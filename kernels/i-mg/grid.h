/* The levels of the curvilinear grid, each of eight blocks, each block with arrays of its own on
 * every level.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_MG_GRID_H
#define I_MG_GRID_H

#include "flow.h"
#include "options.h"

#include <stddef.h>

#define BLOCKS 8 /* two along each direction */
#define MOST_LEVELS 5

/* A block of n^3 cells. States have one layer of ghosts at each side; a ghost at an edge or corner
 * is never used. */
struct block {
    int first[3];                /* its first cell's place in the whole grid */
    double (*state)[VARIABLES];  /* (n + 2)^3 */
    double (*before)[VARIABLES]; /* n^3: the state that came from the finer level; null on the finest */
    double (*force)[VARIABLES];  /* n^3: what the residual is to be equal to */
    double (*area[3])[3];        /* faces across each direction, (n + 1) n^2, pointing upwards */
    double *volume;              /* n^3 */
};

struct level {
    int n;     /* cells an edge of a block */
    int cells; /* of the whole grid: 2 n */
    struct block block[BLOCKS];
};

struct hierarchy {
    int levels;         /* 0 is the finest */
    double *plane_sums; /* one for each block and plane of the finest level */
    struct level level[MOST_LEVELS];
};

/* Cells and faces by their indices in a block; a cell's indices are 0 ... n - 1, ghosts are at -1
 * and n. */
static inline size_t state_at(int n, int i, int j, int k)
{
    size_t w = (size_t)n + 2;
    return ((size_t)(k + 1) * w + (size_t)(j + 1)) * w + (size_t)(i + 1);
}

static inline size_t cell_at(int n, int i, int j, int k)
{
    return ((size_t)k * (size_t)n + (size_t)j) * (size_t)n + (size_t)i;
}

/* The face below cell (i, j, k) across `direction`; the index in that direction goes up to n. */
static inline size_t face_at(int n, int direction, int i, int j, int k)
{
    size_t wide = (size_t)n + (direction == 0), high = (size_t)n + (direction == 1);
    return ((size_t)k * high + (size_t)j) * wide + (size_t)i;
}

/* Bytes of all arrays. */
double hierarchy_bytes(int cells, int levels);

/* Allocates, touches first as the options say, fills in the geometry and the start. */
struct hierarchy hierarchy_make(int cells, int levels, const struct kernel_options *options);
void hierarchy_free(struct hierarchy *h);

/* Calls `visit(array, bytes)` with every main array. */
void hierarchy_visit(const struct hierarchy *h, void (*visit)(void *array, size_t bytes));

/* Where the point with the parameters (a, b, c) of the unit cube lies: a is the direction across
 * the channel, b along it, c along the axis. */
void grid_point(double a, double b, double c, double point[3]);

/* The middle of cell (i, j, k) of a block, by its parameters. */
void cell_middle(const struct level *level, const struct block *block, int i, int j, int k, double point[3]);

#endif
