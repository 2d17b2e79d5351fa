/* A sparse matrix in compressed rows, with the right-hand side and the known solution, in memory
 * and in a file.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_CG_MATRIX_H
#define I_CG_MATRIX_H

#include <stdint.h>
#include <stdio.h>

struct matrix {
    int32_t n, entries;
    int32_t *row_start; /* n + 1 */
    int32_t *column;    /* ascending in each row */
    double *value;
};

struct linear_system {
    struct matrix a;
    int32_t cells; /* of the mesh, an edge */
    double *right, *expected;
};

/* Writes; gives 0, or what the system said. */
int system_write(FILE *file, const struct linear_system *s);

/* Reads with the calling thread; with `parallel`, each thread first touches the rows that it will
 * multiply. Gives null, or what is wrong with the file, in words. */
const char *system_read(FILE *file, struct linear_system *s, int parallel);

/* The place of an entry, or -1. */
int32_t matrix_find(const struct matrix *a, int32_t row, int32_t column);

void matrix_free(struct matrix *a);
void system_free(struct linear_system *s);

#endif
