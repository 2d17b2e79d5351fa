/* Geometry, memory and first touch.
 *
 * The grid is a quarter of the room between two cylinders, waved in all three directions so that no
 * family of faces is flat. A face's area vector is half the cross product of its diagonals: those
 * of a cell add up to zero, which is why a uniform flow stays uniform (the metric identity of
 * finite volumes).
 *
 * Ghosts outside of the grid hold the exact flow, from the start to the end.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "grid.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define WAVE 0.03

void grid_point(double a, double b, double c, double point[3])
{
    double radius = 1.0 + a + WAVE * sin(2.0 * PI * b) * cos(2.0 * PI * c);
    double angle = 0.5 * PI * (b + WAVE * sin(2.0 * PI * a) * cos(2.0 * PI * c));
    point[0] = radius * sin(angle);
    point[1] = radius * cos(angle);
    point[2] = c + WAVE * sin(2.0 * PI * a) * sin(2.0 * PI * b);
}

void cell_middle(const struct level *level, const struct block *block, int i, int j, int k, double point[3])
{
    double h = 1.0 / level->cells;
    grid_point(h * (block->first[0] + i + 0.5), h * (block->first[1] + j + 0.5), h * (block->first[2] + k + 0.5), point);
}

static void corner(const struct level *level, const struct block *block, const int at[3], double point[3])
{
    double h = 1.0 / level->cells;
    grid_point(h * (block->first[0] + at[0]), h * (block->first[1] + at[1]), h * (block->first[2] + at[2]), point);
}

/* The face's corner, `u` and `v` steps along the other two directions in cyclic order, so that the
 * vector points up. */
static void face_area(const struct level *level, const struct block *block, int direction, const int at[3],
                      double area[3])
{
    double p[4][3], d1[3], d2[3];
    for (int c = 0; c < 4; c++) {
        int here[3] = {at[0], at[1], at[2]};
        here[(direction + 1) % 3] += c & 1;
        here[(direction + 2) % 3] += c >> 1;
        corner(level, block, here, p[c]);
    }
    for (int d = 0; d < 3; d++) {
        d1[d] = p[3][d] - p[0][d];
        d2[d] = p[2][d] - p[1][d];
    }
    for (int d = 0; d < 3; d++)
        area[d] = 0.5 * (d1[(d + 1) % 3] * d2[(d + 2) % 3] - d1[(d + 2) % 3] * d2[(d + 1) % 3]);
}

/* The divergence theorem for the position: a third of the sum of (middle of the face) . (its
 * area). */
static double cell_volume(const struct level *level, const struct block *block, int i, int j, int k)
{
    double sum = 0.0;
    for (int direction = 0; direction < 3; direction++)
        for (int up = 0; up < 2; up++) {
            int at[3] = {i, j, k};
            double area[3], p[3];
            at[direction] += up;
            face_area(level, block, direction, at, area);
            for (int c = 0; c < 4; c++) {
                int here[3] = {at[0], at[1], at[2]};
                here[(direction + 1) % 3] += c & 1;
                here[(direction + 2) % 3] += c >> 1;
                corner(level, block, here, p);
                sum += (up ? 1.0 : -1.0) * (p[0] * area[0] + p[1] * area[1] + p[2] * area[2]);
            }
        }
    return sum / 12.0;
}

static int is_outside(const struct level *level, const struct block *block, const int at[3])
{
    for (int d = 0; d < 3; d++)
        if (block->first[d] + at[d] < 0 || block->first[d] + at[d] >= level->cells)
            return 1;
    return 0;
}

static void fill_states(const struct level *level, const struct block *block, int k)
{
    for (int j = -1; j <= level->n; j++)
        for (int i = -1; i <= level->n; i++) {
            double point[3];
            double *state = block->state[state_at(level->n, i, j, k)];
            cell_middle(level, block, i, j, k, point);
            if (is_outside(level, block, (const int[3]){i, j, k}))
                flow_exact(point, state);
            else
                flow_start(point, state);
        }
}

static void fill_faces(const struct level *level, const struct block *block, int direction, int k)
{
    int n = level->n;
    for (int j = 0; j < n + (direction == 1); j++)
        for (int i = 0; i < n + (direction == 0); i++)
            face_area(level, block, direction, (const int[3]){i, j, k},
                      block->area[direction][face_at(n, direction, i, j, k)]);
}

static void clear(double (*array)[VARIABLES], int n, int k)
{
    if (!array)
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            for (int v = 0; v < VARIABLES; v++)
                array[cell_at(n, i, j, k)][v] = 0.0;
}

/* Everything of one plane of cells; ghost planes and the topmost faces go with their neighbours. */
static void fill_plane(const struct level *level, const struct block *block, int k)
{
    int n = level->n;
    if (k == 0)
        fill_states(level, block, -1);
    fill_states(level, block, k);
    if (k == n - 1)
        fill_states(level, block, n);
    for (int direction = 0; direction < 3; direction++)
        fill_faces(level, block, direction, k);
    if (k == n - 1)
        fill_faces(level, block, 2, n);
    clear(block->before, n, k);
    clear(block->force, n, k);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            block->volume[cell_at(n, i, j, k)] = cell_volume(level, block, i, j, k);
}

static size_t cells_of(int n)
{
    return (size_t)n * (size_t)n * (size_t)n;
}

static size_t faces_of(int n)
{
    return (size_t)n * (size_t)n * ((size_t)n + 1);
}

static struct block block_make(int n, int which, int finest)
{
    struct block b = {.first = {(which & 1) * n, (which >> 1 & 1) * n, (which >> 2) * n}};
    b.state = kernel_allocate(cells_of(n + 2), sizeof *b.state, "states");
    if (!finest)
        b.before = kernel_allocate(cells_of(n), sizeof *b.before, "the states before a correction");
    b.force = kernel_allocate(cells_of(n), sizeof *b.force, "forces");
    for (int direction = 0; direction < 3; direction++)
        b.area[direction] = kernel_allocate(faces_of(n), sizeof *b.area[direction], "faces");
    b.volume = kernel_allocate(cells_of(n), sizeof *b.volume, "volumes");
    return b;
}

static void visit_block(const struct block *b, int n, void (*visit)(void *, size_t))
{
    visit(b->state, cells_of(n + 2) * sizeof *b->state);
    if (b->before)
        visit(b->before, cells_of(n) * sizeof *b->before);
    visit(b->force, cells_of(n) * sizeof *b->force);
    for (int direction = 0; direction < 3; direction++)
        visit(b->area[direction], faces_of(n) * sizeof *b->area[direction]);
    visit(b->volume, cells_of(n) * sizeof *b->volume);
}

void hierarchy_visit(const struct hierarchy *h, void (*visit)(void *, size_t))
{
    for (int l = 0; l < h->levels; l++)
        for (int b = 0; b < BLOCKS; b++)
            visit_block(&h->level[l].block[b], h->level[l].n, visit);
}

static void fill_level(struct level *level, int serial)
{
#pragma omp parallel for collapse(2) schedule(static) if (!serial)
    for (int b = 0; b < BLOCKS; b++)
        for (int k = 0; k < level->n; k++)
            fill_plane(level, &level->block[b], k);
}

double hierarchy_bytes(int cells, int levels)
{
    double sum = 0.0;
    for (int l = 0; l < levels; l++) {
        double n = cells / 2 >> l, volume = n * n * n;
        sum += BLOCKS * 8.0 * (5.0 * (n + 2.0) * (n + 2.0) * (n + 2.0) + (l ? 11.0 : 6.0) * volume +
                               9.0 * (n + 1.0) * n * n);
    }
    return sum;
}

struct hierarchy hierarchy_make(int cells, int levels, const struct kernel_options *options)
{
    struct hierarchy h = {.levels = levels};
    for (int l = 0; l < levels; l++) {
        struct level *level = &h.level[l];
        level->n = cells / 2 >> l;
        level->cells = 2 * level->n;
        for (int b = 0; b < BLOCKS; b++)
            level->block[b] = block_make(level->n, b, l == 0);
    }
    h.plane_sums = kernel_allocate(BLOCKS * (size_t)h.level[0].n, sizeof *h.plane_sums, "sums of planes");
    for (int l = 0; l < levels; l++)
        fill_level(&h.level[l], options->serial_init);
    return h;
}

void hierarchy_free(struct hierarchy *h)
{
    for (int l = 0; l < h->levels; l++)
        for (int b = 0; b < BLOCKS; b++) {
            struct block *block = &h->level[l].block[b];
            free(block->state);
            free(block->before);
            free(block->force);
            for (int direction = 0; direction < 3; direction++)
                free(block->area[direction]);
            free(block->volume);
        }
    free(h->plane_sums);
}
