/* Source: The NAS Parallel Benchmarks, RNR-94-007 (conjugate gradient, makea). The order of the
 * draws decides the matrix; it is: value, then place; a place beyond n or drawn before in this
 * vector is thrown away with its value.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "vectors.h"

#include "nas_random.h"
#include "report.h"

#include <stdlib.h>

#define OWN_ENTRY 0.5 /* vector i has this at i */

static int32_t power_of_two_not_below(int32_t n)
{
    int32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static int32_t find(const int32_t *index, int32_t count, int32_t wanted)
{
    for (int32_t k = 0; k < count; k++)
        if (index[k] == wanted)
            return k;
    return -1;
}

static void draw(struct vectors *v, int32_t i, int32_t nonzeros, uint64_t *state)
{
    int32_t *index = v->index + (int64_t)i * v->width;
    double *value = v->value + (int64_t)i * v->width;
    double places = power_of_two_not_below(v->n);
    int32_t count = 0;
    while (count < nonzeros) {
        double number = nas_random_next(state);
        int32_t place = (int32_t)(places * nas_random_next(state));
        if (place >= v->n || find(index, count, place) >= 0)
            continue;
        index[count] = place;
        value[count++] = number;
    }
    int32_t own = find(index, count, i);
    if (own < 0)
        own = count++;
    index[own] = i;
    value[own] = OWN_ENTRY;
    v->count[i] = count;
}

static void count_users(struct vectors *v)
{
    for (int32_t i = 0; i <= v->n; i++)
        v->user_start[i] = 0;
    for (int32_t i = 0; i < v->n; i++)
        for (int32_t k = 0; k < v->count[i]; k++)
            v->user_start[v->index[(int64_t)i * v->width + k] + 1]++;
    for (int32_t i = 0; i < v->n; i++)
        v->user_start[i + 1] += v->user_start[i];
}

static void list_users(struct vectors *v)
{
    int32_t *next = kernel_allocate((size_t)v->n, sizeof *next, "the list of users");
    for (int32_t i = 0; i < v->n; i++)
        next[i] = v->user_start[i];
    for (int32_t i = 0; i < v->n; i++)
        for (int32_t k = 0; k < v->count[i]; k++) {
            int64_t entry = (int64_t)i * v->width + k;
            int32_t slot = next[v->index[entry]]++;
            v->user[slot] = i;
            v->user_value[slot] = v->value[entry];
        }
    free(next);
}

struct vectors vectors_make(int32_t n, int32_t nonzeros)
{
    struct vectors v = {.n = n, .width = nonzeros + 1};
    size_t entries = (size_t)n * (size_t)v.width;
    uint64_t state = NAS_SEED;
    v.count = kernel_allocate((size_t)n, sizeof *v.count, "vector lengths");
    v.index = kernel_allocate(entries, sizeof *v.index, "vector places");
    v.value = kernel_allocate(entries, sizeof *v.value, "vector values");
    v.user_start = kernel_allocate((size_t)n + 1, sizeof *v.user_start, "user starts");
    v.user = kernel_allocate(entries, sizeof *v.user, "users");
    v.user_value = kernel_allocate(entries, sizeof *v.user_value, "user values");
    nas_random_next(&state); /* the benchmark draws one number (its first zeta) before the matrix */
    for (int32_t i = 0; i < n; i++)
        draw(&v, i, nonzeros, &state);
    count_users(&v);
    list_users(&v);
    return v;
}

void vectors_free(struct vectors *v)
{
    free(v->count);
    free(v->index);
    free(v->value);
    free(v->user_start);
    free(v->user);
    free(v->user_value);
}
