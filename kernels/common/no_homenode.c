/* The two calls for a build without libhomenode: the same answers as the library gives when nobody watches.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "homenode.h"

int hn_iteration(uint32_t number)
{
    (void)number;
    return HN_IDLE;
}

int hn_next_touch(const void *address, size_t length)
{
    (void)address;
    (void)length;
    return HN_IDLE;
}
