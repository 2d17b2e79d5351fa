/* homenode: tell the run-time system what it cannot see, and place threads and memory.
 *
 * A program may call every function on any machine, with one node or many, with or without homenode
 * watching, from any thread. Nodes and CPUs have the system's numbers. Each function returns a
 * code. hn_message is the code's text, and hn_last_error describes the last failure in this thread.
 * No function prints, exits or raises a signal.
 *
 * Made by 'cargo xtask c-api': do not edit.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef HOMENODE_H
#define HOMENODE_H

#include <stddef.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Return codes, and what stands for a node where there is none. */
#define HN_OK 0             /* done, or noted in the recording */
#define HN_IDLE 1           /* homenode is not watching this program: nothing to do */
#define HN_EINVAL 2         /* an argument makes no sense (null, a range beyond the address space or not mapped) */
#define HN_ENODE 3          /* there is no such node or CPU, it lacks what was asked for, or this process may not use it */
#define HN_EPERM 4          /* the system forbids the call */
#define HN_ENOMEM 5         /* the node has not enough free memory */
#define HN_PARTIAL 6        /* done for a part: some pages are elsewhere, or not in memory */
#define HN_ERANGE 7         /* the array is too short for the answer */
#define HN_ESYSTEM 8        /* a system call failed in another way: see hn_last_error */
#define HN_END 9            /* hn_next: there are no more indices for this thread */
#define HN_ABSENT (-1)      /* hn_where: the page is not in memory (never written, or swapped out) */
#define HN_UNKNOWN (-2)     /* hn_where: the system does not say where the page is */
#define HN_FIRST_TOUCH (-1) /* hn_place: the node of the thread that touches a page first, as without homenode */
#define HN_BLOCK (-1)       /* hn_distribute: each part gets one range of this dimension, as schedule(static) would give it */
#define HN_STAR (-2)        /* hn_distribute: this dimension is not distributed */
#define HN_OVER_NODES 0     /* hn_distribute: one part for each node that has memory and CPUs */
#define HN_DIMENSIONS 7     /* hn_distribute: most dimensions of an array */

/* What this process may use of a node. */
typedef struct hn_node {
    uint64_t memory; /* bytes of memory; 0: none, or none for this process */
    uint64_t free_memory; /* bytes of it that are free now */
    int32_t cpus; /* CPUs; 0: memory alone */
    int32_t number; /* the number of the node */
} hn_node;

/* Pages of a range by where they are. */
typedef struct hn_placement {
    uint64_t pages; /* pages that the range touches */
    uint64_t there; /* on the node asked for */
    uint64_t elsewhere; /* on other nodes */
    uint64_t absent; /* not in memory: never written, or swapped out */
    uint64_t unknown; /* the system does not say */
} hn_placement;

/* An array and how it is distributed. hn_distribute and hn_alloc_padded fill it in; the fields are
 * there to read. It may be copied, and needs no release. */
typedef struct hn_distribution {
    void *address; /* the first element */
    uint64_t bytes; /* bytes of the array, with the padding of its rows */
    uint64_t element; /* bytes of an element */
    uint64_t leading; /* elements from one row of the innermost dimension to the next */
    uint64_t allocated; /* bytes that hn_alloc_padded allocated; 0: the memory is the program's own */
    uint64_t extents[7]; /* indices of each dimension, the outermost first */
    uint64_t units[7]; /* block borders are multiples of this */
    int64_t spec[7]; /* HN_STAR, HN_BLOCK, or the chunk size of HN_CYCLIC */
    int32_t grid[7]; /* parts in each dimension */
    int32_t dims; /* how many dimensions there are */
    int32_t over; /* HN_OVER_NODES, or the number of parts that was asked for */
    uint32_t mark; /* tells a handle from other memory */
} hn_distribution;

/* Pages of a distributed array by where they are. */
typedef struct hn_spread {
    uint64_t pages; /* pages that the array touches */
    uint64_t there; /* on the node that owns most of the page */
    uint64_t elsewhere; /* on other nodes */
    uint64_t absent; /* not in memory: never written, or swapped out */
    uint64_t unknown; /* the system does not say */
    uint64_t bytes; /* bytes of the array, with the padding of its rows */
    uint64_t stray; /* bytes of them whose page belongs to another node: what rounding to pages put elsewhere */
} hn_spread;

/* ---- What homenode cannot see ---- */

/* Says that round number (from 0) of the program's outer loop begins. Call it at the top of the
 * loop, from one thread, outside of parallel regions or inside master/single. Call it once
 * more after the loop, with the number of rounds: that ends the last round. */
int hn_iteration(uint32_t number);

/* Asks homenode to move each whole page in [address, address + length) to the node of the thread
 * that touches the page next. The contents stay the same. Memory that cannot be moved safely
 * (shared, file-backed, pinned) stays where it is. */
int hn_next_touch(const void *address, size_t length);

/* ---- Threads ---- */

/* Binds the calling thread to cpu. */
int hn_bind_cpu(int32_t cpu);

/* Binds the calling thread to the CPUs of node. */
int hn_bind_node(int32_t node);

/* Undoes hn_bind_cpu and hn_bind_node: the calling thread may run where it might before the first
 * of these calls. */
int hn_unbind(void);

/* Stores the CPU and the node that run the caller. Either pointer may be null. A thread that is
 * not bound may have moved to another CPU when the call returns. */
int hn_here(int32_t *cpu, int32_t *node);

/* ---- Memory ---- */

/* Sets the node of the pages of [address, address + length) that are not in memory yet. Such a
 * page comes from node at its first touch, whichever thread touches it, while the node has room.
 * With HN_FIRST_TOUCH it comes from the toucher's node, as without homenode. Pages that are in
 * memory stay. homenode run does not move memory that the program placed with this call. */
int hn_place(const void *address, size_t length, int32_t node);

/* Moves the pages of [address, address + length) that are in memory to node. The contents stay
 * the same. HN_PARTIAL: some pages are elsewhere afterwards. found receives the counts and may
 * be null. homenode run does not move memory that the program moved with this call. */
int hn_move(const void *address, size_t length, int32_t node, hn_placement *found);

/* Counts the pages of [address, address + length) by where they are. HN_OK: all are on node.
 * HN_PARTIAL: some are not. found receives the counts and may be null. */
int hn_verify(const void *address, size_t length, int32_t node, hn_placement *found);

/* Stores the node of each page of [address, address + length) in nodes, or HN_ABSENT or
 * HN_UNKNOWN. nodes has room for capacity numbers. Stores the number of pages in pages,
 * which may be null. HN_ERANGE: there are more pages than capacity, and nodes has the first
 * capacity of them. To ask for the number of pages alone, pass capacity 0; nodes may then be
 * null. */
int hn_where(const void *address, size_t length, int32_t *nodes, size_t capacity, size_t *pages);

/* ---- The machine ---- */

/* Stores the numbers of the nodes whose memory or CPUs this process may use in nodes, ascending.
 * The numbers may have gaps. nodes has room for capacity numbers. Stores how many nodes there
 * are in count, which may be null. HN_ERANGE: there are more nodes than capacity. To ask for
 * the count alone, pass capacity 0; nodes may then be null. */
int hn_nodes(int32_t *nodes, size_t capacity, size_t *count);

/* Stores what this process may use of node number in node. */
int hn_node_info(int32_t number, hn_node *node);

/* Stores the numbers of the CPUs of node that this process may use in cpus, ascending. Its
 * capacity and count work as those of hn_nodes. */
int hn_node_cpus(int32_t node, int32_t *cpus, size_t capacity, size_t *count);

/* Stores in distance the system's distance from one node's CPUs (from) to another node's
 * memory (to). 10 is local; a larger number is farther. */
int hn_distance(int32_t from, int32_t to, int32_t *distance);

/* ---- What went wrong ---- */

/* Returns the text of a return code. It is never null. Do not free it. */
const char *hn_message(int32_t code);

/* Describes the last failure of these functions in the calling thread: what was tried, on what,
 * what the system said, and what to do. The text is empty if nothing has failed, and never null.
 * Do not free it. The next call that fails in this thread changes it. */
const char *hn_last_error(void);

/* ---- Distributed arrays ---- */

/* Distributes an array over nodes or threads, and fills in handle. The array has dims
 * dimensions, the outermost first (C's order), with extents[0], extents[1], … indices and
 * elements of element bytes. Each dimension is HN_STAR (not distributed), HN_BLOCK (one range a
 * part) or HN_CYCLIC(k) (chunks of k indices in turn). over is HN_OVER_NODES, or a number of
 * parts, such as omp_get_max_threads(): neighbouring parts then share a node. Each page goes to
 * the node that owns most of it; existing pages move, and contents stay. HN_PARTIAL: some pages
 * are elsewhere. homenode run does not move a distributed array. */
int hn_distribute(void *address, const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle);

/* Distributes the array of handle anew, as spec and over say. Pages move; contents stay. */
int hn_redistribute(hn_distribution *handle, const int64_t *spec, int32_t over);

/* Allocates a distributed array in which no page has elements of two parts, and fills in handle:
 * handle->address is the array, handle->leading the number of elements from one row of the
 * innermost dimension to the next. Rows are padded, or block borders are rounded to pages, where
 * that costs less. The memory is zero. hn_free_padded gives it back. */
int hn_alloc_padded(const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle);

/* Frees the array of hn_alloc_padded, and clears handle. Other arrays are the program's own, and
 * are refused. */
int hn_free_padded(hn_distribution *handle);

/* Reads back where the pages of a distributed array are. HN_OK: all are on the node that owns most
 * of the page. HN_PARTIAL: some are not. found receives the counts, with the bytes that rounding
 * to pages put elsewhere, and may be null. */
int hn_verify_distribution(const hn_distribution *handle, hn_spread *found);

/* Stores the part and the node that own the element with indices (one for each dimension, the
 * outermost first). Either pointer may be null. */
int hn_owner(const hn_distribution *handle, const size_t *indices, int32_t *part, int32_t *node);

/* Stores in low and high the range of dimension dim that thread thread of team threads
 * works on: from low up to, not including, high. The ranges of all threads of a team, whatever
 * its size, cover the array once. A range may be empty. HN_EINVAL: the thread's indices are no one
 * range (HN_CYCLIC); use hn_next_of. hn_range asks for the calling thread. */
int hn_range_of(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, size_t *low, size_t *high);

/* Stores in low and high the next range of dimension dim that thread thread of team
 * threads works on. cursor is 0 before the first call. HN_END: there is no further range.
 * hn_next asks for the calling thread. */
int hn_next_of(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, uint64_t *cursor, size_t *low, size_t *high);

/* Binds the calling thread, which is thread thread of team threads, to the node of its part of
 * the array. hn_bind_share asks for the calling thread's number. */
int hn_bind_share_of(const hn_distribution *handle, int32_t thread, int32_t team);

/* Says that the next loop with a schedule of the run-time's (dynamic, guided, runtime) that
 * the calling thread starts, or the first one of the next team that it starts, is loop id.
 * homenode run --schedule deals loops with one id alike, wherever they are in the source. The id
 * holds for one loop. HN_IDLE: homenode does not hand out loops. */
int hn_loop(uint32_t id);

/* ---- Without the library ---- */

/* If HN_HEADER_ONLY is defined before the #include, nothing has to be linked. Each function calls
 * the library that homenode run loads into the program. Without that library it places nothing, and
 * functions that return a code answer HN_IDLE; those that divide an array's indices among threads
 * still do. */
#ifdef HN_HEADER_ONLY
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* What the functions for distributed arrays do without the library: nothing is placed, and the
 * threads of a team divide the first distributed dimension. */
static inline int hn_distribute_alone(void *address, const size_t *extents, size_t element, int32_t dims,
                                      const int64_t *spec, int32_t over, hn_distribution *handle) {
    int32_t i;
    if (!address || !extents || !spec || !handle || !element || dims < 1 || dims > HN_DIMENSIONS || over < 0)
        return HN_EINVAL;
    for (i = 0; i < dims; i++)
        if (!extents[i] || (spec[i] < 1 && spec[i] != HN_BLOCK && spec[i] != HN_STAR))
            return HN_EINVAL;
    memset(handle, 0, sizeof *handle);
    handle->address = address;
    handle->bytes = handle->element = element;
    handle->leading = extents[dims - 1];
    for (i = 0; i < HN_DIMENSIONS; i++) {
        handle->extents[i] = i < dims ? extents[i] : 1;
        handle->spec[i] = i < dims ? spec[i] : HN_STAR;
        handle->bytes *= handle->extents[i];
        handle->units[i] = 1;
        handle->grid[i] = 1;
    }
    handle->dims = dims;
    handle->over = over;
    handle->mark = 0x686e6431;
    return HN_IDLE;
}

static inline int hn_redistribute_alone(hn_distribution *handle, const int64_t *spec, int32_t over) {
    int32_t i;
    if (!handle || handle->mark != 0x686e6431 || !spec || over < 0)
        return HN_EINVAL;
    for (i = 0; i < handle->dims; i++)
        if (spec[i] < 1 && spec[i] != HN_BLOCK && spec[i] != HN_STAR)
            return HN_EINVAL;
    for (i = 0; i < handle->dims; i++)
        handle->spec[i] = spec[i];
    handle->over = over;
    return HN_IDLE;
}

static inline int hn_alloc_padded_alone(const size_t *extents, size_t element, int32_t dims, const int64_t *spec,
                                        int32_t over, hn_distribution *handle) {
    size_t count = 1;
    int32_t i;
    char *memory;
    int code;
    if (!extents || !element || dims < 1 || dims > HN_DIMENSIONS)
        return HN_EINVAL;
    for (i = 0; i < dims; i++) {
        if (extents[i] && count > SIZE_MAX / extents[i])
            return HN_EINVAL;
        count *= extents[i];
    }
    memory = (char *)calloc(count, element);
    if (!memory)
        return HN_ENOMEM;
    code = hn_distribute_alone(memory, extents, element, dims, spec, over, handle);
    if (code == HN_IDLE)
        handle->allocated = handle->bytes;
    else
        free(memory);
    return code;
}

static inline int hn_free_padded_alone(hn_distribution *handle) {
    if (!handle || handle->mark != 0x686e6431 || !handle->allocated)
        return HN_EINVAL;
    free(handle->address);
    memset(handle, 0, sizeof *handle);
    return HN_OK;
}

static inline int hn_verify_distribution_alone(const hn_distribution *handle, hn_spread *found) {
    if (!handle || handle->mark != 0x686e6431)
        return HN_EINVAL;
    if (found) {
        memset(found, 0, sizeof *found);
        found->bytes = handle->bytes;
    }
    return HN_IDLE;
}

static inline int hn_owner_alone(const hn_distribution *handle, const size_t *indices, int32_t *part, int32_t *node) {
    int32_t i;
    if (!handle || handle->mark != 0x686e6431 || !indices)
        return HN_EINVAL;
    for (i = 0; i < handle->dims; i++)
        if (indices[i] >= handle->extents[i])
            return HN_EINVAL;
    if (part)
        *part = 0;
    if (node)
        *node = 0;
    return HN_IDLE;
}

static inline int hn_range_of_alone(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team,
                                    size_t *low, size_t *high) {
    int32_t first = 0;
    if (low)
        *low = 0;
    if (high)
        *high = 0;
    if (!handle || handle->mark != 0x686e6431 || dim < 0 || dim >= handle->dims || thread < 0 || thread >= team || !low ||
        !high)
        return HN_EINVAL;
    while (first < handle->dims && handle->spec[first] == HN_STAR)
        first++;
    *high = (size_t)handle->extents[dim];
    if (dim == (first < handle->dims ? first : 0)) {
        size_t each = *high / (size_t)team, longer = *high % (size_t)team, t = (size_t)thread;
        *low = each * t + (t < longer ? t : longer);
        *high = *low + each + (t < longer);
    }
    return HN_OK;
}

static inline int hn_next_of_alone(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team,
                                   uint64_t *cursor, size_t *low, size_t *high) {
    size_t from, to;
    int code = hn_range_of_alone(handle, dim, thread, team, &from, &to);
    if (code != HN_OK || !cursor || !low || !high)
        return HN_EINVAL;
    if (*cursor || from == to)
        return HN_END;
    *cursor = 1;
    *low = from;
    *high = to;
    return HN_OK;
}

static inline int hn_iteration_found(uint32_t number) {
    static int (*f)(uint32_t number);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_iteration");
        asked = 1;
    }
    return f ? f(number) : ((void)(number), HN_IDLE);
}
#define hn_iteration hn_iteration_found

static inline int hn_next_touch_found(const void *address, size_t length) {
    static int (*f)(const void *address, size_t length);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_next_touch");
        asked = 1;
    }
    return f ? f(address, length) : ((void)(address), (void)(length), HN_IDLE);
}
#define hn_next_touch hn_next_touch_found

static inline int hn_bind_cpu_found(int32_t cpu) {
    static int (*f)(int32_t cpu);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_bind_cpu");
        asked = 1;
    }
    return f ? f(cpu) : ((void)(cpu), HN_IDLE);
}
#define hn_bind_cpu hn_bind_cpu_found

static inline int hn_bind_node_found(int32_t node) {
    static int (*f)(int32_t node);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_bind_node");
        asked = 1;
    }
    return f ? f(node) : ((void)(node), HN_IDLE);
}
#define hn_bind_node hn_bind_node_found

static inline int hn_unbind_found(void) {
    static int (*f)(void);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_unbind");
        asked = 1;
    }
    return f ? f() : (HN_IDLE);
}
#define hn_unbind hn_unbind_found

static inline int hn_here_found(int32_t *cpu, int32_t *node) {
    static int (*f)(int32_t *cpu, int32_t *node);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_here");
        asked = 1;
    }
    return f ? f(cpu, node) : ((void)(cpu), (void)(node), HN_IDLE);
}
#define hn_here hn_here_found

static inline int hn_place_found(const void *address, size_t length, int32_t node) {
    static int (*f)(const void *address, size_t length, int32_t node);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_place");
        asked = 1;
    }
    return f ? f(address, length, node) : ((void)(address), (void)(length), (void)(node), HN_IDLE);
}
#define hn_place hn_place_found

static inline int hn_move_found(const void *address, size_t length, int32_t node, hn_placement *found) {
    static int (*f)(const void *address, size_t length, int32_t node, hn_placement *found);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_move");
        asked = 1;
    }
    return f ? f(address, length, node, found) : ((void)(address), (void)(length), (void)(node), (void)(found), HN_IDLE);
}
#define hn_move hn_move_found

static inline int hn_verify_found(const void *address, size_t length, int32_t node, hn_placement *found) {
    static int (*f)(const void *address, size_t length, int32_t node, hn_placement *found);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_verify");
        asked = 1;
    }
    return f ? f(address, length, node, found) : ((void)(address), (void)(length), (void)(node), (void)(found), HN_IDLE);
}
#define hn_verify hn_verify_found

static inline int hn_where_found(const void *address, size_t length, int32_t *nodes, size_t capacity, size_t *pages) {
    static int (*f)(const void *address, size_t length, int32_t *nodes, size_t capacity, size_t *pages);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_where");
        asked = 1;
    }
    return f ? f(address, length, nodes, capacity, pages) : ((void)(address), (void)(length), (void)(nodes), (void)(capacity), (void)(pages), HN_IDLE);
}
#define hn_where hn_where_found

static inline int hn_nodes_found(int32_t *nodes, size_t capacity, size_t *count) {
    static int (*f)(int32_t *nodes, size_t capacity, size_t *count);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_nodes");
        asked = 1;
    }
    return f ? f(nodes, capacity, count) : ((void)(nodes), (void)(capacity), (void)(count), HN_IDLE);
}
#define hn_nodes hn_nodes_found

static inline int hn_node_info_found(int32_t number, hn_node *node) {
    static int (*f)(int32_t number, hn_node *node);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_node_info");
        asked = 1;
    }
    return f ? f(number, node) : ((void)(number), (void)(node), HN_IDLE);
}
#define hn_node_info hn_node_info_found

static inline int hn_node_cpus_found(int32_t node, int32_t *cpus, size_t capacity, size_t *count) {
    static int (*f)(int32_t node, int32_t *cpus, size_t capacity, size_t *count);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_node_cpus");
        asked = 1;
    }
    return f ? f(node, cpus, capacity, count) : ((void)(node), (void)(cpus), (void)(capacity), (void)(count), HN_IDLE);
}
#define hn_node_cpus hn_node_cpus_found

static inline int hn_distance_found(int32_t from, int32_t to, int32_t *distance) {
    static int (*f)(int32_t from, int32_t to, int32_t *distance);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_distance");
        asked = 1;
    }
    return f ? f(from, to, distance) : ((void)(from), (void)(to), (void)(distance), HN_IDLE);
}
#define hn_distance hn_distance_found

static inline const char *hn_message_found(int32_t code) {
    static const char *(*f)(int32_t code);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_message");
        asked = 1;
    }
    return f ? f(code) : ((void)(code), "homenode is not there");
}
#define hn_message hn_message_found

static inline const char *hn_last_error_found(void) {
    static const char *(*f)(void);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_last_error");
        asked = 1;
    }
    return f ? f() : ("homenode is not there");
}
#define hn_last_error hn_last_error_found

static inline int hn_distribute_found(void *address, const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle) {
    static int (*f)(void *address, const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_distribute");
        asked = 1;
    }
    return f ? f(address, extents, element, dims, spec, over, handle) : (hn_distribute_alone(address, extents, element, dims, spec, over, handle));
}
#define hn_distribute hn_distribute_found

static inline int hn_redistribute_found(hn_distribution *handle, const int64_t *spec, int32_t over) {
    static int (*f)(hn_distribution *handle, const int64_t *spec, int32_t over);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_redistribute");
        asked = 1;
    }
    return f ? f(handle, spec, over) : (hn_redistribute_alone(handle, spec, over));
}
#define hn_redistribute hn_redistribute_found

static inline int hn_alloc_padded_found(const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle) {
    static int (*f)(const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_alloc_padded");
        asked = 1;
    }
    return f ? f(extents, element, dims, spec, over, handle) : (hn_alloc_padded_alone(extents, element, dims, spec, over, handle));
}
#define hn_alloc_padded hn_alloc_padded_found

static inline int hn_free_padded_found(hn_distribution *handle) {
    static int (*f)(hn_distribution *handle);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_free_padded");
        asked = 1;
    }
    return f ? f(handle) : (hn_free_padded_alone(handle));
}
#define hn_free_padded hn_free_padded_found

static inline int hn_verify_distribution_found(const hn_distribution *handle, hn_spread *found) {
    static int (*f)(const hn_distribution *handle, hn_spread *found);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_verify_distribution");
        asked = 1;
    }
    return f ? f(handle, found) : (hn_verify_distribution_alone(handle, found));
}
#define hn_verify_distribution hn_verify_distribution_found

static inline int hn_owner_found(const hn_distribution *handle, const size_t *indices, int32_t *part, int32_t *node) {
    static int (*f)(const hn_distribution *handle, const size_t *indices, int32_t *part, int32_t *node);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_owner");
        asked = 1;
    }
    return f ? f(handle, indices, part, node) : (hn_owner_alone(handle, indices, part, node));
}
#define hn_owner hn_owner_found

static inline int hn_range_of_found(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, size_t *low, size_t *high) {
    static int (*f)(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, size_t *low, size_t *high);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_range_of");
        asked = 1;
    }
    return f ? f(handle, dim, thread, team, low, high) : (hn_range_of_alone(handle, dim, thread, team, low, high));
}
#define hn_range_of hn_range_of_found

static inline int hn_next_of_found(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, uint64_t *cursor, size_t *low, size_t *high) {
    static int (*f)(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, uint64_t *cursor, size_t *low, size_t *high);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_next_of");
        asked = 1;
    }
    return f ? f(handle, dim, thread, team, cursor, low, high) : (hn_next_of_alone(handle, dim, thread, team, cursor, low, high));
}
#define hn_next_of hn_next_of_found

static inline int hn_bind_share_of_found(const hn_distribution *handle, int32_t thread, int32_t team) {
    static int (*f)(const hn_distribution *handle, int32_t thread, int32_t team);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_bind_share_of");
        asked = 1;
    }
    return f ? f(handle, thread, team) : ((void)(handle), (void)(thread), (void)(team), HN_IDLE);
}
#define hn_bind_share_of hn_bind_share_of_found

static inline int hn_loop_found(uint32_t id) {
    static int (*f)(uint32_t id);
    static char asked;
    if (!asked) {
        *(void **)(&f) = dlsym((void *)0, "hn_loop");
        asked = 1;
    }
    return f ? f(id) : ((void)(id), HN_IDLE);
}
#define hn_loop hn_loop_found
#endif

/* ---- This thread's share of a distributed array ---- */

/* A spec: chunks of k indices are dealt to the parts in turn. */
#define HN_CYCLIC(k) ((int64_t)(k))

/* The calling thread's number and the number of threads. Without OpenMP there is one thread. A
 * program with threads of its own defines both before the #include. */
#ifndef HN_THREAD
#ifdef _OPENMP
#define HN_THREAD ((int32_t)omp_get_thread_num())
#define HN_TEAM ((int32_t)omp_get_num_threads())
#else
#define HN_THREAD 0
#define HN_TEAM 1
#endif
#endif

/* As hn_range_of, for the calling thread of an 'omp parallel'. */
static inline int hn_range(const hn_distribution *handle, int32_t dim, size_t *low, size_t *high) {
    return hn_range_of(handle, dim, HN_THREAD, HN_TEAM, low, high);
}

/* As hn_next_of, for the calling thread of an 'omp parallel'. */
static inline int hn_next(const hn_distribution *handle, int32_t dim, uint64_t *cursor, size_t *low, size_t *high) {
    return hn_next_of(handle, dim, HN_THREAD, HN_TEAM, cursor, low, high);
}

/* As hn_bind_share_of, for the calling thread of an 'omp parallel'. */
static inline int hn_bind_share(const hn_distribution *handle) {
    return hn_bind_share_of(handle, HN_THREAD, HN_TEAM);
}

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#include <initializer_list>

namespace homenode {

/* The indices of one dimension that the calling thread works on:
 *
 *     #pragma omp parallel
 *     for (std::size_t i : array.mine(0))
 *         …
 */
class indices {
  public:
    class iterator {
      public:
        iterator(const hn_distribution *of, int32_t dim, bool is_end)
            : of_(of), dim_(dim), cursor_(0), at_(0), end_(0), is_end_(is_end) {
            if (!is_end_)
                next();
        }
        std::size_t operator*() const { return at_; }
        iterator &operator++() {
            if (++at_ == end_)
                next();
            return *this;
        }
        bool operator!=(const iterator &other) const { return is_end_ != other.is_end_; }

      private:
        void next() { is_end_ = hn_next(of_, dim_, &cursor_, &at_, &end_) != HN_OK; }
        const hn_distribution *of_;
        int32_t dim_;
        uint64_t cursor_;
        std::size_t at_, end_;
        bool is_end_;
    };
    indices(const hn_distribution *of, int32_t dim) : of_(of), dim_(dim) {}
    iterator begin() const { return iterator(of_, dim_, false); }
    iterator end() const { return iterator(of_, dim_, true); }

  private:
    const hn_distribution *of_;
    int32_t dim_;
};

/* A distributed array: the memory is the program's own. */
class distribution {
  public:
    /* As hn_distribute. code() is its answer; HN_IDLE where there is no homenode. */
    template <class T>
    distribution(T *address, std::initializer_list<std::size_t> extents, std::initializer_list<int64_t> spec,
                 int32_t over = HN_OVER_NODES)
        : handle_(), code_(HN_EINVAL) {
        if (extents.size() == spec.size())
            code_ = hn_distribute(address, extents.begin(), sizeof(T), (int32_t)extents.size(), spec.begin(), over, &handle_);
    }
    int code() const { return code_; }
    const hn_distribution &handle() const { return handle_; }
    /* The calling thread's indices of a dimension. */
    indices mine(int32_t dim) const { return indices(&handle_, dim); }
    /* As hn_redistribute. */
    int redistribute(std::initializer_list<int64_t> spec, int32_t over = HN_OVER_NODES) {
        if ((std::size_t)handle_.dims != spec.size())
            return HN_EINVAL;
        return code_ = hn_redistribute(&handle_, spec.begin(), over);
    }
    /* As hn_verify_distribution. */
    int verify(hn_spread *found = nullptr) const { return hn_verify_distribution(&handle_, found); }

  private:
    hn_distribution handle_;
    int code_;
};

} /* namespace homenode */
#endif
#endif
