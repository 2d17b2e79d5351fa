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

/* Who touches the matrix first.
 *
 * BUILT_AS_NPB is what the OpenMP version of NPB 3.0 does (github.com/benchmark-subsetting/
 * NPB3.0-omp-C at 96816312, CG/cg.c, makea and sparse). Its list of entries still holds those that
 * fall on one place several times. The threads clear `value` in the rows of this list, in a loop
 * "preload data pages"; the initial thread then sorts the entries into `value` and `column`, adds
 * up those of one place and closes the gaps. So
 *
 * - `column` lies where the initial thread runs, but for n elements that the threads clear as work
 *   space, and
 * - `value` is spread by rows that are longer than the final ones: a row's values begin before the
 *   part of `value` that its thread has cleared, the farther the higher the row. */
enum matrix_builder { BUILT_BY_INITIAL_THREAD, BUILT_BY_ROW_OWNERS, BUILT_AS_NPB };

/* `nonzeros` random entries a generating vector; `shift` is subtracted from the diagonal. */
struct matrix matrix_build(int32_t n, int32_t nonzeros, double shift, enum matrix_builder builder);

#endif
