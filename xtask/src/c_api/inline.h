
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
