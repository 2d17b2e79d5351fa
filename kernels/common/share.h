/* A thread's contiguous share of `count` things: the shares of neighbours touch, and differ by one
 * thing at most.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_SHARE_H
#define KERNEL_SHARE_H

#include <stdint.h>

struct share {
    int64_t first, end;
};

static inline struct share share_of(int64_t count, int threads, int thread)
{
    struct share s = {count * thread / threads, count * (thread + 1) / threads};
    return s;
}

#endif
