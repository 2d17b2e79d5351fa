/* The random sparse vectors whose outer products make up the matrix of NAS CG. Needed only while it
 * is built.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef NAS_CG_VECTORS_H
#define NAS_CG_VECTORS_H

#include <stdint.h>

struct vectors {
    int32_t n, width; /* n vectors of at most `width` entries */
    int32_t *count;   /* n */
    int32_t *index;   /* n * width */
    double *value;    /* n * width */
    /* The same by index: the vectors that have an entry there, ascending. */
    int32_t *user_start; /* n + 1 */
    int32_t *user;
    double *user_value;
};

struct vectors vectors_make(int32_t n, int32_t nonzeros);
void vectors_free(struct vectors *v);

#endif
