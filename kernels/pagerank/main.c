/* pagerank: importance of the vertices of a graph with a power law of degrees.
 *
 * Source: L. Page, S. Brin, R. Motwani and T. Winograd, The PageRank Citation Ranking, Stanford
 * 1999, with damping 0.85; the graph is that of graph.h. A round gives every vertex the sum of rank
 * / degree over the edges into it; vertices without edges out give their rank to all. Each thread
 * owns neighbouring vertices with an equal share of the edges.
 *
 * Verified against a serial program that pushes ranks along the edges in the order of their making,
 * from the generator and not from the stored graph; the ranks must add up to one.
 *
 * Placement. Edges and own ranks are private; what the sources of edges give is read at random by
 * everybody, a few pages with small numbers much more than the rest: no placement makes these
 * local. `--init parallel`: a vertex and the edges into it are touched by their owner.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "graph.h"
#include "homenode.h"
#include "report.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#define DAMPING 0.85

/* Of the graph and the ranks, and of the reference. */
static double bytes(int64_t size, int letter)
{
    double graph = 8.0 + 4.0 + 4.0 * EDGES_A_VERTEX + 2.0 * 8.0, reference = 8.0 * EDGES_A_VERTEX + 4.0 + 2.0 * 8.0;
    (void)letter;
    return (graph + reference) * (double)size;
}

static const struct kernel_about about = {
    .name = "pagerank",
    .summary = "PageRank on a random graph with a power law of degrees",
    .size_meaning = "vertices, a power of two; 16 edges a vertex",
    .classes_from = "vertices",
    .example = "pagerank --class A --threads 4 --init serial --next-touch",
    .classes = {{'S', 1 << 12, 20}, {'W', 1 << 16, 20}, {'A', 1 << 20, 20}, {'B', 1 << 22, 20}},
    .default_class = 'A',
    .least_size = 2,
    .most_size = 1 << 28,
    .power_of_two = 1,
    .bytes = bytes,
};

/* A thread's part of a sum, in a line of its own. */
struct partial {
    _Alignas(64) double value;
};

struct ranks {
    struct graph graph;
    int threads;
    double *rank, *gift; /* gift: rank / degree, what each edge out of a vertex carries */
    struct partial *stranded; /* [thread]: rank of vertices without edges out */
};

static void start_vertices(const struct ranks *r, int64_t first, int64_t end)
{
    for (int64_t v = first; v < end; v++) {
        r->rank[v] = 1.0 / (double)r->graph.n;
        r->gift[v] = 0.0;
    }
}

static struct ranks make(const struct kernel_options *options)
{
    struct ranks r = {.threads = options->threads};
    size_t n = (size_t)options->size;
    r.rank = kernel_allocate(n, sizeof *r.rank, "the ranks");
    r.gift = kernel_allocate(n, sizeof *r.gift, "what edges carry");
    r.stranded = kernel_allocate_aligned(_Alignof(struct partial), (size_t)r.threads, sizeof *r.stranded, "sums");
    r.graph = graph_make(options);
    int serial = options->serial_init;
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        if (!serial)
            start_vertices(&r, r.graph.first_owned[me], r.graph.first_owned[me + 1]);
        else if (me == 0)
            start_vertices(&r, 0, r.graph.n);
    }
    return r;
}

/* Gifts of own vertices; returns the rank of those that have nobody to give to. */
static double prepare_gifts(const struct ranks *r, int64_t first, int64_t end)
{
    double stranded = 0.0;
    for (int64_t v = first; v < end; v++) {
        int32_t degree = r->graph.degree[v];
        r->gift[v] = degree ? r->rank[v] / degree : 0.0;
        stranded += degree ? 0.0 : r->rank[v];
    }
    return stranded;
}

static void collect_gifts(const struct ranks *r, int64_t first, int64_t end, double base)
{
    const int64_t *restrict start = r->graph.start;
    const int32_t *restrict source = r->graph.source;
    const double *restrict gift = r->gift;
    double *restrict rank = r->rank;
    for (int64_t v = first; v < end; v++) {
        double sum = 0.0;
        for (int64_t k = start[v]; k < start[v + 1]; k++)
            sum += gift[source[k]];
        rank[v] = base + DAMPING * sum;
    }
}

static void run_round(const struct ranks *r)
{
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        int64_t first = r->graph.first_owned[me], end = r->graph.first_owned[me + 1];
        double stranded = 0.0, n = (double)r->graph.n;
        r->stranded[me].value = prepare_gifts(r, first, end);
#pragma omp barrier
        for (int t = 0; t < r->threads; t++)
            stranded += r->stranded[t].value;
        collect_gifts(r, first, end, (1.0 - DAMPING) / n + DAMPING * stranded / n);
    }
}

static void ask_next_touch(const struct ranks *r)
{
    size_t n = (size_t)r->graph.n;
    kernel_note_next_touch(hn_next_touch(r->graph.start, (n + 1) * sizeof *r->graph.start));
    kernel_note_next_touch(hn_next_touch(r->graph.source, (size_t)r->graph.edges * sizeof *r->graph.source));
    kernel_note_next_touch(hn_next_touch(r->graph.degree, n * sizeof *r->graph.degree));
    kernel_note_next_touch(hn_next_touch(r->rank, n * sizeof *r->rank));
    kernel_note_next_touch(hn_next_touch(r->gift, n * sizeof *r->gift));
}

static void iterate(const struct ranks *r, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            ask_next_touch(r);
        run_round(r);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

/* One round of the reference: `next` from `now`, which becomes what each edge carries. */
static void push_ranks(int64_t n, const struct edge *edges, const int32_t *degree, double *now, double *next)
{
    double stranded = 0.0;
    for (int64_t v = n - 1; v >= 0; v--) {
        stranded += degree[v] ? 0.0 : now[v];
        now[v] /= degree[v] ? degree[v] : 1;
        next[v] = 0.0;
    }
    for (int64_t k = 0; k < n * EDGES_A_VERTEX; k++)
        next[edges[k].to] += now[edges[k].from];
    for (int64_t v = 0; v < n; v++)
        next[v] = (1.0 - DAMPING + DAMPING * stranded) / (double)n + DAMPING * next[v];
}

/* The ranks by the reference; to be freed. */
static double *reference_ranks(int64_t n, int32_t rounds)
{
    size_t vertices = (size_t)n, count = vertices * EDGES_A_VERTEX;
    struct edge *edges = kernel_allocate(count, sizeof *edges, "the reference's edges");
    int32_t *degree = kernel_allocate(vertices, sizeof *degree, "the reference's degrees");
    double *now = kernel_allocate(vertices, sizeof *now, "the reference's ranks");
    double *next = kernel_allocate(vertices, sizeof *next, "the reference's next ranks");
    for (int64_t v = 0; v < n; v++) {
        degree[v] = 0;
        now[v] = 1.0 / (double)n;
    }
    for (size_t k = 0; k < count; k++) {
        edges[k] = graph_edge(n, (int64_t)k);
        degree[edges[k].from]++;
    }
    for (int32_t k = 0; k < rounds; k++) {
        push_ranks(n, edges, degree, now, next);
        double *swap = now;
        now = next;
        next = swap;
    }
    free(edges);
    free(degree);
    free(next);
    return now;
}

/* Sums of n small equal ranks, of vertices without edges, are rounded to one side: by up to n
 * roundings. */
static int verify(const struct ranks *r, int32_t rounds)
{
    double *expected = reference_ranks(r->graph.n, rounds), worst = 0.0, sum = 0.0;
    for (int64_t v = 0; v < r->graph.n; v++) {
        double error = fabs(r->rank[v] - expected[v]) / expected[v];
        worst = error > worst || isnan(error) ? error : worst;
        sum += r->rank[v];
    }
    free(expected);
    double bound = 1e-12 + DBL_EPSILON * (double)r->graph.n;
    const struct kernel_check checks[] = {
        {"deviation from the serial reference", worst, bound},
        {"deviation of the sum from one", fabs(sum - 1.0), bound},
    };
    return kernel_verify_checks(checks, 2);
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct ranks r = make(&options);
    iterate(&r, &options);
    status = verify(&r, options.iterations);
    graph_free(&r.graph);
    free(r.rank);
    free(r.gift);
    free(r.stranded);
    return status;
}
