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
#define HN_ABSENT (-1)      /* hn_where: the page is not in memory (never written, or swapped out) */
#define HN_UNKNOWN (-2)     /* hn_where: the system does not say where the page is */
#define HN_FIRST_TOUCH (-1) /* hn_place: the node of the thread that touches a page first, as without homenode */

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

/* ---- Without the library ---- */

/* If HN_HEADER_ONLY is defined before the #include, nothing has to be linked. Each function calls
 * the library that homenode run loads into the program. Without that library it does nothing, and
 * functions that return a code answer HN_IDLE. */
#ifdef HN_HEADER_ONLY
#include <dlfcn.h>

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
#endif

#ifdef __cplusplus
}
#endif
#endif
