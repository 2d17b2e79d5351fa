/* Times of the outer iterations, and the one line that says whether the result is right.
 *
 *     kernel_start(&about, &options);
 *     for (k = 0; k < n; k++) { kernel_mark(k); hn_iteration(k); ... }
 *     kernel_mark(n); hn_iteration(n);
 *     return kernel_verify_...(...);
 *
 * The mark comes before hn_iteration so that what homenode does there counts into the round that
 * begins.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_REPORT_H
#define KERNEL_REPORT_H

#include "options.h"

#include <stddef.h>

/* An error and how large it may be. */
struct kernel_check {
    const char *what;
    double error, bound;
};

void kernel_start(const struct kernel_about *about, const struct kernel_options *options);
void kernel_mark(int32_t iteration);

/* Where the benchmark's clock starts, when that is before round 0: the initial state is part of
 * what it times. */
void kernel_begin_section(void);

/* Remember what hn_next_touch answered, to print it. */
void kernel_note_next_touch(int code);

/* A count that the input does not tell, such as a matrix's entries: printed under the table and in
 * JSON's `counts`. `name` is kept, not copied. */
void kernel_note_count(const char *name, int64_t value);

/* Each prints the report and gives the exit status: 0, or 1 when the result is wrong. */
int kernel_verify_value(const char *what, double value, double expected, double relative_tolerance);
int kernel_verify_bound(const char *what, double error, double bound);
int kernel_verify_checks(const struct kernel_check *checks, int count); /* all must hold */
/* Several bounds, which all must hold. JSON's quantity is the one that is nearest to its bound, or
 * farthest beyond. */
struct kernel_bound {
    const char *what;
    double value, bound;
};
int kernel_verify_bounds(const struct kernel_bound *bounds, int count);

/* A study of the order of accuracy (--verify order): prints the table and the orders between
 * neighbouring rows instead of the times. Right when the last order is at least `least`. */
struct kernel_order_row {
    int size, work; /* cells an edge; cycles, steps, ... that it took */
    double error;
};
int kernel_verify_order(const char *size_name, const char *work_name, const char *error_name,
                        const struct kernel_order_row *rows, int count, double least);

int kernel_not_verified(const char *reason, const char *what, double value);

/* Memory that is not touched yet (with --init round-robin: whose pages are dealt over the threads,
 * see memory.h), or the end of the program with a sentence. */
void *kernel_allocate(size_t count, size_t size, const char *what);

/* The same on a boundary; count * size must be a multiple of it. */
void *kernel_allocate_aligned(size_t alignment, size_t count, size_t size, const char *what);

#endif
