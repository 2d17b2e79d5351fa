/* The functions of homenode.h without the library: compile this file with a Fortran program that is
 * not linked with homenode. Each function calls the library that 'homenode run' loads, if there is
 * one. Do not link with -rdynamic: the functions would find themselves.
 *
 * Made by 'cargo xtask c-api': do not edit.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define HN_HEADER_ONLY
#include <homenode.h>

#undef hn_iteration
__attribute__((weak)) int hn_iteration(uint32_t number) {
    return hn_iteration_found(number);
}

#undef hn_next_touch
__attribute__((weak)) int hn_next_touch(const void *address, size_t length) {
    return hn_next_touch_found(address, length);
}

#undef hn_bind_cpu
__attribute__((weak)) int hn_bind_cpu(int32_t cpu) {
    return hn_bind_cpu_found(cpu);
}

#undef hn_bind_node
__attribute__((weak)) int hn_bind_node(int32_t node) {
    return hn_bind_node_found(node);
}

#undef hn_unbind
__attribute__((weak)) int hn_unbind(void) {
    return hn_unbind_found();
}

#undef hn_here
__attribute__((weak)) int hn_here(int32_t *cpu, int32_t *node) {
    return hn_here_found(cpu, node);
}

#undef hn_place
__attribute__((weak)) int hn_place(const void *address, size_t length, int32_t node) {
    return hn_place_found(address, length, node);
}

#undef hn_move
__attribute__((weak)) int hn_move(const void *address, size_t length, int32_t node, hn_placement *found) {
    return hn_move_found(address, length, node, found);
}

#undef hn_verify
__attribute__((weak)) int hn_verify(const void *address, size_t length, int32_t node, hn_placement *found) {
    return hn_verify_found(address, length, node, found);
}

#undef hn_where
__attribute__((weak)) int hn_where(const void *address, size_t length, int32_t *nodes, size_t capacity, size_t *pages) {
    return hn_where_found(address, length, nodes, capacity, pages);
}

#undef hn_nodes
__attribute__((weak)) int hn_nodes(int32_t *nodes, size_t capacity, size_t *count) {
    return hn_nodes_found(nodes, capacity, count);
}

#undef hn_node_info
__attribute__((weak)) int hn_node_info(int32_t number, hn_node *node) {
    return hn_node_info_found(number, node);
}

#undef hn_node_cpus
__attribute__((weak)) int hn_node_cpus(int32_t node, int32_t *cpus, size_t capacity, size_t *count) {
    return hn_node_cpus_found(node, cpus, capacity, count);
}

#undef hn_distance
__attribute__((weak)) int hn_distance(int32_t from, int32_t to, int32_t *distance) {
    return hn_distance_found(from, to, distance);
}

#undef hn_message
__attribute__((weak)) const char *hn_message(int32_t code) {
    return hn_message_found(code);
}

#undef hn_last_error
__attribute__((weak)) const char *hn_last_error(void) {
    return hn_last_error_found();
}

#undef hn_distribute
__attribute__((weak)) int hn_distribute(void *address, const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle) {
    return hn_distribute_found(address, extents, element, dims, spec, over, handle);
}

#undef hn_redistribute
__attribute__((weak)) int hn_redistribute(hn_distribution *handle, const int64_t *spec, int32_t over) {
    return hn_redistribute_found(handle, spec, over);
}

#undef hn_alloc_padded
__attribute__((weak)) int hn_alloc_padded(const size_t *extents, size_t element, int32_t dims, const int64_t *spec, int32_t over, hn_distribution *handle) {
    return hn_alloc_padded_found(extents, element, dims, spec, over, handle);
}

#undef hn_free_padded
__attribute__((weak)) int hn_free_padded(hn_distribution *handle) {
    return hn_free_padded_found(handle);
}

#undef hn_verify_distribution
__attribute__((weak)) int hn_verify_distribution(const hn_distribution *handle, hn_spread *found) {
    return hn_verify_distribution_found(handle, found);
}

#undef hn_owner
__attribute__((weak)) int hn_owner(const hn_distribution *handle, const size_t *indices, int32_t *part, int32_t *node) {
    return hn_owner_found(handle, indices, part, node);
}

#undef hn_range_of
__attribute__((weak)) int hn_range_of(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, size_t *low, size_t *high) {
    return hn_range_of_found(handle, dim, thread, team, low, high);
}

#undef hn_next_of
__attribute__((weak)) int hn_next_of(const hn_distribution *handle, int32_t dim, int32_t thread, int32_t team, uint64_t *cursor, size_t *low, size_t *high) {
    return hn_next_of_found(handle, dim, thread, team, cursor, low, high);
}

#undef hn_bind_share_of
__attribute__((weak)) int hn_bind_share_of(const hn_distribution *handle, int32_t thread, int32_t team) {
    return hn_bind_share_of_found(handle, thread, team);
}

#undef hn_loop
__attribute__((weak)) int hn_loop(uint32_t id) {
    return hn_loop_found(id);
}
