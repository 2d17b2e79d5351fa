/* A cell of the box is cut into six tetrahedra, one for each way from its lowest to its highest
 * corner along three edges (H. W. Kuhn, 1960). What makes the mesh unstructured: the tetrahedra are
 * shuffled, inner nodes are moved at random, and nodes are numbered as a search in breadth from a
 * node beside the body meets them, among neighbours at random. Edges are numbered by their nodes.
 * So the numbering is that of a mesh generator followed by Cuthill and McKee's (1969): a row's
 * columns lie in a band, in no pattern; Löf notes that such a matrix is "more organized" than NAS
 * CG's.
 *
 * With a body of 11/25 of the cube's side, 66 cells give 1 795 087 unknowns with 16 entries a row
 * (0.0009 %); Löf's mesh has 1 794 058.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "mesh.h"

#include "nas_random.h"
#include "report.h"

#include <stdlib.h>

#define SHIFT 0.15 /* of an inner node in each direction at most, in cells: no tetrahedron turns over */

const int edge_nodes[TET_EDGES][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

int32_t mesh_body_cells(int32_t cells)
{
    return cells * 11 / 25;
}

static int in_body(int32_t cells, const int32_t at[3])
{
    int32_t side = mesh_body_cells(cells), first = (cells - side) / 2;
    for (int d = 0; d < 3; d++)
        if (at[d] < first || at[d] >= first + side)
            return 0;
    return 1;
}

static int32_t node_at(int32_t cells, const int32_t at[3])
{
    return (at[2] * (cells + 1) + at[1]) * (cells + 1) + at[0];
}

static void cut_cell(struct mesh *m, int32_t cells, const int32_t cell[3])
{
    static const int ways[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int w = 0; w < 6; w++) {
        int32_t at[3] = {cell[0], cell[1], cell[2]};
        int32_t *tet = m->tet[m->tets++];
        tet[0] = node_at(cells, at);
        for (int s = 0; s < 3; s++) {
            at[ways[w][s]]++;
            tet[s + 1] = node_at(cells, at);
        }
    }
}

static int32_t random_below(uint64_t *state, int32_t limit)
{
    return (int32_t)(nas_random_next(state) * limit);
}

static void swap_tets(struct mesh *m, int32_t a, int32_t b)
{
    for (int c = 0; c < TET_NODES; c++) {
        int32_t keep = m->tet[a][c];
        m->tet[a][c] = m->tet[b][c];
        m->tet[b][c] = keep;
    }
}

static void cut_box(struct mesh *m, int32_t cells, uint64_t *state)
{
    int32_t side = mesh_body_cells(cells), at[3];
    m->tet = kernel_allocate(6 * (size_t)(cells * cells * cells - side * side * side), sizeof *m->tet, "tetrahedra");
    for (at[2] = 0; at[2] < cells; at[2]++)
        for (at[1] = 0; at[1] < cells; at[1]++)
            for (at[0] = 0; at[0] < cells; at[0]++)
                if (!in_body(cells, at))
                    cut_cell(m, cells, at);
    for (int32_t t = m->tets - 1; t > 0; t--)
        swap_tets(m, t, random_below(state, t + 1));
}

/* Lists `users` of each of `things`: which of `count` rows of `width` numbers contain it,
 * ascending. */
static void list_users(const int32_t *rows, int32_t count, int width, int32_t things, int32_t **start, int32_t **users)
{
    int64_t numbers = (int64_t)count * width;
    *start = kernel_allocate((size_t)things + 2, sizeof **start, "starts of lists");
    *users = kernel_allocate((size_t)numbers, sizeof **users, "lists");
    int32_t *next = *start + 1; /* one further: after filling, it has become the list of starts */
    for (int32_t i = 0; i < things + 2; i++)
        (*start)[i] = 0;
    for (int64_t k = 0; k < numbers; k++)
        (*start)[rows[k] + 2]++;
    for (int32_t i = 2; i < things + 2; i++)
        (*start)[i] += (*start)[i - 1];
    for (int64_t k = 0; k < numbers; k++)
        (*users)[next[rows[k]]++] = (int32_t)(k / width);
}

/* The lowest corner of the body; without one, of the box. */
static int32_t first_node(int32_t cells)
{
    int32_t side = mesh_body_cells(cells), first = (cells - side) / 2;
    return node_at(cells, (const int32_t[3]){first, first, first});
}

/* rank[place in the box] = the node's number, or -1 where there is none; `met` lists places by
 * number. */
static void number_nodes(struct mesh *m, int32_t cells, int32_t *rank, int32_t *met)
{
    int32_t places = (cells + 1) * (cells + 1) * (cells + 1), *start, *users;
    list_users(m->tet[0], m->tets, TET_NODES, places, &start, &users);
    for (int32_t i = 0; i < places; i++)
        rank[i] = -1;
    met[0] = first_node(cells);
    rank[met[0]] = 0;
    m->nodes = 1;
    for (int32_t done = 0; done < m->nodes; done++)
        for (int32_t u = start[met[done]]; u < start[met[done] + 1]; u++)
            for (int c = 0; c < TET_NODES; c++) {
                int32_t place = m->tet[users[u]][c];
                if (rank[place] >= 0)
                    continue;
                rank[place] = m->nodes;
                met[m->nodes++] = place;
            }
    free(start);
    free(users);
}

static void place_nodes(struct mesh *m, int32_t cells, const int32_t *met, uint64_t *state)
{
    m->point = kernel_allocate((size_t)m->nodes, sizeof *m->point, "nodes");
    for (int32_t i = 0; i < m->nodes; i++) {
        int32_t w = cells + 1, at[3] = {met[i] % w, met[i] / w % w, met[i] / w / w};
        for (int d = 0; d < 3; d++) {
            double shift = SHIFT * (2.0 * nas_random_next(state) - 1.0);
            int on_side = at[d] == 0 || at[d] == cells;
            m->point[i][d] = (at[d] + (on_side ? 0.0 : shift)) / cells;
        }
    }
}

static void sort(int32_t *a, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        int32_t wanted = a[i], k = i;
        for (; k > 0 && a[k - 1] > wanted; k--)
            a[k] = a[k - 1];
        a[k] = wanted;
    }
}

static void renumber_tets(struct mesh *m, const int32_t *rank)
{
    for (int32_t t = 0; t < m->tets; t++) {
        for (int c = 0; c < TET_NODES; c++)
            m->tet[t][c] = rank[m->tet[t][c]];
        sort(m->tet[t], TET_NODES);
    }
}

/* Larger nodes that share a tetrahedron with `node`, ascending; `seen` remembers who asked last. */
static int32_t larger_neighbours(const struct mesh *m, int32_t node, const int32_t *users, int32_t count, int32_t *seen,
                                 int32_t *out)
{
    int32_t found = 0;
    for (int32_t u = 0; u < count; u++)
        for (int c = 0; c < TET_NODES; c++) {
            int32_t other = m->tet[users[u]][c];
            if (other <= node || seen[other] == node)
                continue;
            seen[other] = node;
            out[found++] = other;
        }
    sort(out, found);
    return found;
}

/* By halving: the edge from `node` to `other` among those that begin at `node`. */
static int32_t find_edge(const struct mesh *m, const int32_t *first, int32_t node, int32_t other)
{
    int32_t low = first[node], high = first[node + 1] - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (m->edge[middle][1] < other)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#define MOST_NEIGHBOURS 14 /* of a node, in this cutting of the box */

static void number_edges(struct mesh *m)
{
    int32_t *start, *users, *seen = kernel_allocate((size_t)m->nodes, sizeof *seen, "marks");
    int32_t *first = kernel_allocate((size_t)m->nodes + 1, sizeof *first, "first edges");
    list_users(m->tet[0], m->tets, TET_NODES, m->nodes, &start, &users);
    m->edge = kernel_allocate((size_t)m->nodes * MOST_NEIGHBOURS / 2, sizeof *m->edge, "edges");
    for (int32_t i = 0; i < m->nodes; i++)
        seen[i] = -1;
    for (int32_t i = 0; i < m->nodes; i++) {
        int32_t others[MOST_NEIGHBOURS];
        int32_t count = larger_neighbours(m, i, users + start[i], start[i + 1] - start[i], seen, others);
        first[i] = m->edges;
        for (int32_t k = 0; k < count; k++) {
            m->edge[m->edges][0] = i;
            m->edge[m->edges++][1] = others[k];
        }
    }
    first[m->nodes] = m->edges;
    m->tet_edge = kernel_allocate((size_t)m->tets, sizeof *m->tet_edge, "edges of tetrahedra");
    for (int32_t t = 0; t < m->tets; t++)
        for (int e = 0; e < TET_EDGES; e++)
            m->tet_edge[t][e] = find_edge(m, first, m->tet[t][edge_nodes[e][0]], m->tet[t][edge_nodes[e][1]]);
    free(start);
    free(users);
    free(seen);
    free(first);
}

/* Around an inner edge lie as many triangles as tetrahedra, on a surface one more. Each triangle
 * brings two other edges and each tetrahedron the opposite one. */
static int is_inner(const struct mesh *m, int32_t edge, int32_t *seen)
{
    int32_t tets = m->edge_start[edge + 1] - m->edge_start[edge], edges = 0;
    for (int32_t u = m->edge_start[edge]; u < m->edge_start[edge + 1]; u++)
        for (int e = 0; e < TET_EDGES; e++) {
            int32_t other = m->tet_edge[m->edge_tet[u]][e];
            edges += seen[other] != edge;
            seen[other] = edge;
        }
    return edges == 1 + 3 * tets;
}

static void number_unknowns(struct mesh *m)
{
    int32_t *seen = kernel_allocate((size_t)m->edges, sizeof *seen, "marks");
    m->unknown = kernel_allocate((size_t)m->edges, sizeof *m->unknown, "unknowns");
    for (int32_t e = 0; e < m->edges; e++)
        seen[e] = -1;
    for (int32_t e = 0; e < m->edges; e++)
        m->unknown[e] = is_inner(m, e, seen) ? m->unknowns++ : -1;
    free(seen);
}

struct mesh mesh_make(int32_t cells)
{
    struct mesh m = {0};
    uint64_t state = NAS_SEED;
    size_t places = (size_t)(cells + 1) * (size_t)(cells + 1) * (size_t)(cells + 1);
    int32_t *rank = kernel_allocate(places, sizeof *rank, "ranks");
    int32_t *met = kernel_allocate(places, sizeof *met, "the search");
    cut_box(&m, cells, &state);
    number_nodes(&m, cells, rank, met);
    place_nodes(&m, cells, met, &state);
    renumber_tets(&m, rank);
    free(rank);
    free(met);
    number_edges(&m);
    list_users(m.tet_edge[0], m.tets, TET_EDGES, m.edges, &m.edge_start, &m.edge_tet);
    number_unknowns(&m);
    return m;
}

void mesh_free(struct mesh *m)
{
    free(m->point);
    free(m->tet);
    free(m->tet_edge);
    free(m->edge);
    free(m->edge_start);
    free(m->edge_tet);
    free(m->unknown);
}
