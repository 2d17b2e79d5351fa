/* Numbers that depend on their place only, so that every thread can make any of them, and a check
 * can make them again.
 *
 * Source: the finaliser of splitmix64, S. Vigna.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_NOISE_H
#define KERNEL_NOISE_H

#include <stdint.h>

static inline uint64_t noise_bits(uint64_t place)
{
    uint64_t z = place * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* In [-0.5, 0.5). */
static inline double noise(uint64_t place)
{
    return (double)(noise_bits(place) >> 11) * 0x1p-53 - 0.5;
}

#endif
