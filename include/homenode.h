/* homenode: tell the run-time system what it cannot see.
 *
 * Every function may be called on any machine, with or without homenode watching, from any thread. Without homenode
 * (the program was started directly) they do nothing and return HN_IDLE. They never fail in a way that a program must
 * handle.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef HOMENODE_H
#define HOMENODE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return codes. */
#define HN_OK 0     /* done, or noted in the recording */
#define HN_IDLE 1   /* homenode is not watching this program: nothing to do */
#define HN_EINVAL 2 /* an argument makes no sense (null range, length beyond the address space) */

/* Round `number` (from 0) of the program's outer loop begins. Call it from one thread, outside of parallel regions or
 * inside `master`/`single`, at the top of the loop; and once more with the number of rounds after the loop, which ends
 * the last round. */
int hn_iteration(uint32_t number);

/* Each whole page in [address, address + length) goes to the node of the thread that touches it next. Contents are
 * kept. Memory that cannot be moved safely (shared, file-backed, pinned) stays where it is. */
int hn_next_touch(const void *address, size_t length);

/* Text of a return code; never null, never to be freed. */
const char *hn_message(int code);

#ifdef __cplusplus
}
#endif
#endif
