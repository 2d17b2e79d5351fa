/* The sparse matrix of NAS CG, in compressed rows.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef NAS_CG_MATRIX_H
#define NAS_CG_MATRIX_H

#include <stdint.h>

struct matrix {
    int32_t n;
    int32_t *row_start; /* n + 1 */
    int32_t *column;    /* row_start[n], ascending in each row */
    double *value;
};

/* `nonzeros` random entries a generating vector; `shift` is subtracted from the diagonal. With
 * `serial`, the initial thread alone touches the matrix. */
struct matrix matrix_build(int32_t n, int32_t nonzeros, double shift, int serial);

#endif
