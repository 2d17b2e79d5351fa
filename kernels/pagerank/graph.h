/* A random graph with a power law of degrees, and its edges by their ends.
 *
 * Source: D. Chakrabarti, Y. Zhan and C. Faloutsos, R-MAT: A Recursive Model for Graph Mining, SDM
 * 2004, with the probabilities and the sixteen edges a vertex of the Graph 500 benchmark. Loops and
 * repeated edges stay; vertices keep their numbers, so those with many edges have small ones.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef PAGERANK_GRAPH_H
#define PAGERANK_GRAPH_H

#include "options.h"

#include <stdint.h>

#define EDGES_A_VERTEX 16

struct edge {
    int32_t from, to;
};

/* Edge number `k` of a graph with n vertices, a power of two. */
struct edge graph_edge(int64_t n, int64_t k);

/* Edges into vertex v come from source[start[v]] ... source[start[v + 1] - 1]. */
struct graph {
    int64_t n, edges;
    int64_t *start;
    int32_t *source;
    int32_t *degree;      /* edges out of a vertex */
    int64_t *first_owned; /* [thread + 1]: vertices whose edges and own work are an equal share */
};

struct graph graph_make(const struct kernel_options *options);
void graph_free(struct graph *g);

#endif
