/* The calls of homenode's C library for a kernel that is built without it, as
 * kernels/common/no_homenode.c has them, but that the lab's monitor learns of the iterations, which
 * changes nothing for anybody else, and homes.c, if it is loaded.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include "homenode.h"

#include <dlfcn.h>

#define MARK(code) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x686e0000+" #code ::: "memory")

int hn_iteration(uint32_t number)
{
    if (number == 0)
        MARK(1);
    else
        MARK(3);
    void (*homes_at)(unsigned) = (void (*)(unsigned))dlsym(RTLD_DEFAULT, "homes_at");
    if (homes_at)
        homes_at(number);
    return HN_IDLE;
}

int hn_next_touch(const void *address, size_t length)
{
    (void)address;
    (void)length;
    return HN_IDLE;
}
