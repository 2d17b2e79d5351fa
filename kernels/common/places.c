/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "places.h"

#include "report.h"
#include "share.h"

#include <stdlib.h>

struct places places_make(int64_t kinds, int threads)
{
    struct places p = {.kinds = kinds, .threads = threads};
    p.count = kernel_allocate((size_t)kinds * (size_t)threads, sizeof *p.count, "the threads' counts");
    p.total = kernel_allocate((size_t)threads, sizeof *p.total, "the sums of counts");
    return p;
}

void places_free(struct places *p)
{
    free(p->count);
    free(p->total);
}

int32_t *places_begin(const struct places *p, int thread)
{
    int32_t *count = p->count + (int64_t)thread * p->kinds;
    for (int64_t k = 0; k < p->kinds; k++)
        count[k] = 0;
    return count;
}

/* A thread does its share of the kinds, after a sum of what lies before it. */
void places_find(const struct places *p, int thread)
{
    struct share mine = share_of(p->kinds, p->threads, thread);
    int32_t sum = 0, place = 0;
#pragma omp barrier
    for (int t = 0; t < p->threads; t++)
        for (int64_t k = mine.first; k < mine.end; k++)
            sum += p->count[(int64_t)t * p->kinds + k];
    p->total[thread] = sum;
#pragma omp barrier
    for (int t = 0; t < thread; t++)
        place += p->total[t];
    for (int64_t k = mine.first; k < mine.end; k++)
        for (int t = 0; t < p->threads; t++) {
            int32_t *count = &p->count[(int64_t)t * p->kinds + k], here = *count;
            *count = place;
            place += here;
        }
#pragma omp barrier
}

int32_t places_end(const struct places *p, int64_t kind)
{
    return kind < 0 ? 0 : p->count[(int64_t)(p->threads - 1) * p->kinds + kind];
}
