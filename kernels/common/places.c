/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "places.h"

#include "report.h"
#include "share.h"

#include <stdlib.h>

/* No two threads have counts on a page. */
#define PAGE 4096

struct places places_make(int64_t kinds, int threads)
{
    int64_t a_page = PAGE / (int64_t)sizeof(int32_t);
    struct places p = {.kinds = kinds, .threads = threads, .apart = (kinds + a_page - 1) / a_page * a_page};
    size_t counts = (size_t)p.apart * (size_t)threads;
    p.count = kernel_allocate_aligned(PAGE, counts, sizeof *p.count, "the threads' counts");
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
    int32_t *count = p->count + (int64_t)thread * p->apart;
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
            sum += p->count[(int64_t)t * p->apart + k];
    p->total[thread] = sum;
#pragma omp barrier
    for (int t = 0; t < thread; t++)
        place += p->total[t];
    for (int64_t k = mine.first; k < mine.end; k++)
        for (int t = 0; t < p->threads; t++) {
            int32_t *count = &p->count[(int64_t)t * p->apart + k], here = *count;
            *count = place;
            place += here;
        }
#pragma omp barrier
}

int32_t places_end(const struct places *p, int64_t kind)
{
    return kind < 0 ? 0 : p->count[(int64_t)(p->threads - 1) * p->apart + kind];
}
