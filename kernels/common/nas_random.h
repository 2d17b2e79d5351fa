/* The pseudo-random numbers of the NAS Parallel Benchmarks: x' = 5^13 x mod 2^46, value x' / 2^46.
 *
 * Source: D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007. Double-precision
 * implementations multiply in halves; 64-bit integers give the same numbers, because the product's
 * lower 46 bits survive the wrap-around.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef NAS_RANDOM_H
#define NAS_RANDOM_H

#include <stdint.h>

#define NAS_SEED 314159265u
#define NAS_MULTIPLIER 1220703125u /* 5^13 */

/* Advance and give the next number in (0, 1). */
static inline double nas_random_next(uint64_t *state)
{
    *state = *state * NAS_MULTIPLIER & ((UINT64_C(1) << 46) - 1);
    return (double)*state * 0x1p-46;
}

/* The state after `steps` numbers, in log2(steps) multiplications. */
static inline uint64_t nas_random_jump(uint64_t state, uint64_t steps)
{
    uint64_t power = NAS_MULTIPLIER;
    for (; steps; steps >>= 1, power *= power)
        if (steps & 1)
            state *= power;
    return state & ((UINT64_C(1) << 46) - 1);
}

/* `count` numbers in a row. The Fortran programs use it. */
void nas_random_fill(uint64_t *state, int32_t count, double *numbers);

#endif
