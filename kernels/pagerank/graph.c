/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "graph.h"

#include "noise.h"
#include "report.h"

#include <omp.h>
#include <stdlib.h>

/* Of the four quarters of the adjacency matrix, in 65536ths; the last has the rest. */
#define UPPER_LEFT 37356  /* 0.57 */
#define UPPER_RIGHT 12452 /* 0.19 */
#define LOWER_LEFT 12452
#define LEVELS_A_NUMBER 4 /* of 16 bits */

struct edge graph_edge(int64_t n, int64_t k)
{
    struct edge e = {0, 0};
    uint64_t bits = 0, place = (uint64_t)k * 16;
    int level = 0;
    for (int64_t half = n / 2; half > 0; half /= 2, level++) {
        if (level % LEVELS_A_NUMBER == 0)
            bits = noise_bits(place++);
        unsigned draw = bits & 0xffff;
        bits >>= 16;
        /* Sums of comparisons instead of branches, which nobody could predict. */
        int low = draw >= UPPER_LEFT + UPPER_RIGHT;
        int right = (draw >= UPPER_LEFT) - low + (draw >= UPPER_LEFT + UPPER_RIGHT + LOWER_LEFT);
        e.from += (int32_t)(low * half);
        e.to += (int32_t)(right * half);
    }
    return e;
}

/* Counts in place: start[v + 1] becomes the number of edges into v. */
static void count_edges(const struct graph *g, int64_t *count)
{
    for (int64_t v = 0; v <= g->n; v++)
        count[v] = 0;
    for (int64_t k = 0; k < g->edges; k++)
        count[graph_edge(g->n, k).to + 1]++;
    for (int64_t v = 0; v < g->n; v++)
        count[v + 1] += count[v];
}

/* Vertices are dealt so that edges + vertices are the same for all. */
static void share_out(struct graph *g, const int64_t *start, int threads)
{
    int64_t v = 0;
    for (int t = 0; t < threads; t++) {
        int64_t before = (g->edges + g->n) * t / threads;
        while (v < g->n && start[v] + v < before)
            v++;
        g->first_owned[t] = v;
    }
    g->first_owned[threads] = g->n;
}

/* Touches what a thread owns; or, on one thread, everything. */
static void touch(struct graph *g, const int64_t *start, int serial)
{
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        int64_t first = g->first_owned[me], end = g->first_owned[me + 1];
        if (serial) {
            first = 0;
            end = me == 0 ? g->n : 0;
        }
        for (int64_t v = first; v < end; v++) {
            g->start[v] = start[v];
            g->degree[v] = 0;
            for (int64_t k = start[v]; k < start[v + 1]; k++)
                g->source[k] = 0;
        }
    }
    g->start[g->n] = start[g->n];
}

/* The order of the edges into a vertex is that of their numbers. The initial thread fills in what
 * others touched. */
static void fill(struct graph *g, int64_t *next)
{
    for (int64_t k = 0; k < g->edges; k++) {
        struct edge e = graph_edge(g->n, k);
        g->source[next[e.to]++] = e.from;
        g->degree[e.from]++;
    }
}

struct graph graph_make(const struct kernel_options *options)
{
    struct graph g = {.n = options->size, .edges = options->size * EDGES_A_VERTEX};
    size_t n = (size_t)g.n, edges = (size_t)g.edges;
    g.start = kernel_allocate(n + 1, sizeof *g.start, "the vertices");
    g.source = kernel_allocate(edges, sizeof *g.source, "the edges");
    g.degree = kernel_allocate(n, sizeof *g.degree, "the degrees");
    g.first_owned = kernel_allocate((size_t)options->threads + 1, sizeof *g.first_owned, "the shares");
    int64_t *count = kernel_allocate(n + 1, sizeof *count, "the counts of edges");
    count_edges(&g, count);
    share_out(&g, count, options->threads);
    touch(&g, count, options->serial_init);
    fill(&g, count);
    free(count);
    return g;
}

void graph_free(struct graph *g)
{
    free(g->start);
    free(g->source);
    free(g->degree);
    free(g->first_owned);
}
