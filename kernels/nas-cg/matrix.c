/* A = sum over i of size_i v_i v_i' + (0.1 - shift) I, where size_i falls geometrically from 1 to
 * 0.1, so that the condition number is about 10 before the shift.
 *
 * Source: The NAS Parallel Benchmarks, RNR-94-007.
 *
 * By default each thread makes the rows that it will multiply (the same static schedule over rows
 * as in solve.c), first counting them, then filling them in; each touches first what it will use.
 * The random vectors are drawn by the initial thread: they are one stream, short, and freed before
 * the solver starts.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "matrix.h"

#include "report.h"
#include "vectors.h"

#include <math.h>
#include <stdlib.h>

#define CONDITION 0.1

/* What one thread needs to add up one row: the row spread out, and which row last used a place. */
struct scratch {
    double *sum;
    int32_t *last_row;
};

static struct scratch scratch_make(int32_t n)
{
    struct scratch s = {kernel_allocate((size_t)n, sizeof *s.sum, "a row"),
                        kernel_allocate((size_t)n, sizeof *s.last_row, "a row's places")};
    for (int32_t j = 0; j < n; j++)
        s.last_row[j] = -1;
    return s;
}

static void scratch_free(struct scratch *s)
{
    free(s->sum);
    free(s->last_row);
}

static int32_t count_row(const struct vectors *v, int32_t row, struct scratch *s)
{
    int32_t count = 0;
    for (int32_t u = v->user_start[row]; u < v->user_start[row + 1]; u++) {
        int64_t first = (int64_t)v->user[u] * v->width;
        for (int32_t k = 0; k < v->count[v->user[u]]; k++) {
            int32_t j = v->index[first + k];
            count += s->last_row[j] != row;
            s->last_row[j] = row;
        }
    }
    return count;
}

/* Rows have about nonzeros^2 entries, a few hundred, in runs: insertion is good enough. */
static void sort(int32_t *a, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        int32_t wanted = a[i], k = i;
        for (; k > 0 && a[k - 1] > wanted; k--)
            a[k] = a[k - 1];
        a[k] = wanted;
    }
}

/* Adds size_i v_i(row) v_i for every vector that has an entry at `row`; lists the places in
 * `column`. */
static int32_t add_products(const struct vectors *v, int32_t row, double ratio, struct scratch *s, int32_t *column)
{
    int32_t count = 0;
    for (int32_t u = v->user_start[row]; u < v->user_start[row + 1]; u++) {
        int32_t i = v->user[u];
        int64_t first = (int64_t)i * v->width;
        double scale = pow(ratio, i) * v->user_value[u];
        for (int32_t k = 0; k < v->count[i]; k++) {
            int32_t j = v->index[first + k];
            if (s->last_row[j] != row) {
                s->last_row[j] = row;
                s->sum[j] = 0.0;
                column[count++] = j;
            }
            s->sum[j] += scale * v->value[first + k];
        }
    }
    return count;
}

static void fill_row(const struct matrix *a, const struct vectors *v, int32_t row, double diagonal, struct scratch *s)
{
    double ratio = pow(CONDITION, 1.0 / v->n);
    int32_t *column = a->column + a->row_start[row];
    double *value = a->value + a->row_start[row];
    int32_t count = add_products(v, row, ratio, s, column);
    s->sum[row] += diagonal; /* is there: vector `row` has an entry at `row` */
    sort(column, count);
    for (int32_t k = 0; k < count; k++)
        value[k] = s->sum[column[k]];
}

static void count_rows(struct matrix *a, const struct vectors *v, int serial)
{
#pragma omp parallel if (!serial)
    {
        struct scratch s = scratch_make(v->n);
#pragma omp for schedule(static)
        for (int32_t i = 0; i < v->n; i++)
            a->row_start[i + 1] = count_row(v, i, &s);
        scratch_free(&s);
    }
    a->row_start[0] = 0;
    for (int32_t i = 0; i < v->n; i++)
        a->row_start[i + 1] += a->row_start[i];
}

static void fill_rows(struct matrix *a, const struct vectors *v, double diagonal, int serial)
{
#pragma omp parallel if (!serial)
    {
        struct scratch s = scratch_make(v->n);
#pragma omp for schedule(static)
        for (int32_t i = 0; i < v->n; i++)
            fill_row(a, v, i, diagonal, &s);
        scratch_free(&s);
    }
}

/* Where each row of NPB's list of entries begins: one entry for each vector of the row and each
 * place of this vector, and the diagonal. n + 1 numbers. */
static int32_t *start_with_duplicates(const struct vectors *v)
{
    int32_t *start = kernel_allocate((size_t)v->n + 1, sizeof *start, "rows with duplicates");
    start[0] = 0;
    for (int32_t i = 0; i < v->n; i++) {
        start[i + 1] = start[i] + 1;
        for (int32_t u = v->user_start[i]; u < v->user_start[i + 1]; u++)
            start[i + 1] += v->count[v->user[u]];
    }
    return start;
}

/* The first touches of NPB's threads, see matrix.h. */
static void touch_as_npb(const struct matrix *a, const int32_t *start)
{
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < a->n; i++)
        if (a->n + i < start[a->n])
            a->column[a->n + i] = 0;
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < a->n; i++)
        for (int32_t k = start[i]; k < start[i + 1]; k++)
            a->value[k] = 0.0;
}

struct matrix matrix_build(int32_t n, int32_t nonzeros, double shift, enum matrix_builder builder)
{
    struct vectors v = vectors_make(n, nonzeros);
    struct matrix a = {.n = n};
    int32_t *duplicates = builder == BUILT_AS_NPB ? start_with_duplicates(&v) : NULL;
    a.row_start = kernel_allocate((size_t)n + 1, sizeof *a.row_start, "row starts");
    count_rows(&a, &v, builder == BUILT_BY_INITIAL_THREAD);
    size_t entries = (size_t)(duplicates ? duplicates[n] : a.row_start[n]);
    a.column = kernel_allocate(entries, sizeof *a.column, "columns");
    a.value = kernel_allocate(entries, sizeof *a.value, "values");
    if (duplicates)
        touch_as_npb(&a, duplicates);
    free(duplicates);
    fill_rows(&a, &v, CONDITION - shift, builder != BUILT_BY_ROW_OWNERS);
    vectors_free(&v);
    return a;
}
