/* Tetrahedra in a unit cube around a body, in no regular order, and their edges.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_CG_MESH_H
#define I_CG_MESH_H

#include <stdint.h>

#define TET_NODES 4
#define TET_EDGES 6

/* Nodes of a tetrahedron and of an edge ascend: an edge points from the smaller to the larger
 * number everywhere. */
struct mesh {
    int32_t nodes, tets, edges, unknowns;
    double (*point)[3];
    int32_t (*tet)[TET_NODES];
    int32_t (*tet_edge)[TET_EDGES]; /* in the order of `edge_nodes` */
    int32_t (*edge)[2];
    int32_t *edge_start, *edge_tet; /* tetrahedra at an edge, ascending */
    int32_t *unknown;               /* an edge's number among the unknowns, -1 on the surfaces */
};

/* Local nodes of a tetrahedron's edges. */
extern const int edge_nodes[TET_EDGES][2];

/* A box of cells^3, six tetrahedra each, less a cube of mesh_body_cells(cells)^3 in its middle. */
struct mesh mesh_make(int32_t cells);
void mesh_free(struct mesh *m);

int32_t mesh_body_cells(int32_t cells);

#endif
