/* Memory of the main arrays: whether there is enough, who gets it, and dealing its pages over the
 * threads.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_MEMORY_H
#define KERNEL_MEMORY_H

#include <stddef.h>

/* Bytes that the system can give without swapping: MemAvailable, or less where a control group
 * allows less. Infinite where neither is told. */
double kernel_available_bytes(void);

/* First touch by turns: thread t of T clears the first word of pages t, t + T, t + 2 T, ... of the
 * array. Its first page may be shared with the allocator's header, which the initial thread has
 * touched. */
void kernel_deal_pages(void *array, size_t bytes);

#endif
