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
