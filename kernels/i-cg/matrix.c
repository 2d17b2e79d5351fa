/* The file: a header of six 8-byte words, the row starts, columns, values, right-hand side and
 * expected solution as they lie in memory, and a checksum of these. It is meant for the machine
 * that wrote it: the first word shows another byte order.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "matrix.h"

#include "memory.h"
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC INT64_C(0x31454744455f4e48) /* HN_EDGE1 in the byte order of x86 */
#define MOST_CELLS 256

enum { HEAD_MAGIC, HEAD_CELLS, HEAD_ROWS, HEAD_ENTRIES, HEAD_FIRST_SUM, HEAD_SECOND_SUM, HEAD_WORDS };

/* Fletcher's checksum (1982) over 32-bit words, with sums of 64 bits. All arrays consist of such
 * words. */
struct checksum {
    uint64_t first, second;
};

static void add_to(struct checksum *sum, const void *array, size_t bytes)
{
    const uint32_t *word = array;
    for (size_t i = 0; i < bytes / sizeof *word; i++) {
        sum->first += word[i];
        sum->second += sum->first;
    }
}

struct part {
    void *array;
    size_t size, count;
};

#define PARTS 5

static void list_parts(const struct linear_system *s, struct part parts[PARTS])
{
    size_t n = (size_t)s->a.n, entries = (size_t)s->a.entries;
    const struct part all[PARTS] = {{s->a.row_start, sizeof *s->a.row_start, n + 1},
                                    {s->a.column, sizeof *s->a.column, entries},
                                    {s->a.value, sizeof *s->a.value, entries},
                                    {s->right, sizeof *s->right, n},
                                    {s->expected, sizeof *s->expected, n}};
    memcpy(parts, all, sizeof all);
}

static struct checksum sum_of(const struct part parts[PARTS])
{
    struct checksum sum = {1, 1};
    for (int p = 0; p < PARTS; p++)
        add_to(&sum, parts[p].array, parts[p].size * parts[p].count);
    return sum;
}

int system_write(FILE *file, const struct linear_system *s)
{
    struct part parts[PARTS];
    list_parts(s, parts);
    struct checksum sum = sum_of(parts);
    const int64_t head[HEAD_WORDS] = {MAGIC,        s->cells, s->a.n, s->a.entries, (int64_t)sum.first,
                                      (int64_t)sum.second};
    errno = 0;
    size_t written = fwrite(head, sizeof head, 1, file);
    for (int p = 0; p < PARTS && written; p++)
        written = fwrite(parts[p].array, parts[p].size, parts[p].count, file) == parts[p].count;
    if (written && !fflush(file))
        return 0;
    return errno ? errno : EIO;
}

/* What the header must obey, given the file's length. */
static const char *check_head(const int64_t head[HEAD_WORDS], int64_t length)
{
    int64_t n = head[HEAD_ROWS], entries = head[HEAD_ENTRIES];
    if (head[HEAD_MAGIC] != MAGIC)
        return "it is no matrix file of i-cg, or one of a machine with another byte order";
    if (head[HEAD_CELLS] < 1 || head[HEAD_CELLS] > MOST_CELLS || n < 1 || entries < n || n >= INT32_MAX ||
        entries >= INT32_MAX || entries > n * n)
        return "its header has impossible counts";
    if (length != (int64_t)sizeof(int64_t) * HEAD_WORDS + 4 * (n + 1) + 12 * entries + 16 * n)
        return "its length does not fit the counts in its header: it was cut off, or something was added";
    return NULL;
}

static void touch_vectors(struct linear_system *s)
{
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < s->a.n; i++) {
        s->right[i] = 0.0;
        s->expected[i] = 0.0;
        s->a.row_start[i + 1] = 0;
    }
}

/* Starts that do not ascend would lead out of the arrays. */
static int starts_are_right(const struct matrix *a)
{
    int right = a->row_start[0] == 0 && a->row_start[a->n] == a->entries;
    for (int32_t i = 0; right && i < a->n; i++)
        right = a->row_start[i] < a->row_start[i + 1];
    return right;
}

static void touch_rows(struct matrix *a)
{
#pragma omp parallel for schedule(static)
    for (int32_t i = 0; i < a->n; i++)
        for (int32_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
            a->column[k] = 0;
            a->value[k] = 0.0;
        }
}

static int32_t find_in(const int32_t *column, int32_t low, int32_t high, int32_t wanted)
{
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (column[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t matrix_find(const struct matrix *a, int32_t row, int32_t column)
{
    int32_t end = a->row_start[row + 1], k = find_in(a->column, a->row_start[row], end, column);
    return k < end && a->column[k] == column ? k : -1;
}

static int row_is_right(const struct matrix *a, int32_t row)
{
    for (int32_t k = a->row_start[row]; k < a->row_start[row + 1]; k++) {
        int ascends = k == a->row_start[row] || a->column[k] > a->column[k - 1];
        if (!ascends || a->column[k] < 0 || a->column[k] >= a->n || !isfinite(a->value[k]))
            return 0;
    }
    int32_t diagonal = matrix_find(a, row, row);
    return diagonal >= 0 && a->value[diagonal] > 0.0;
}

static int row_is_symmetric(const struct matrix *a, int32_t row)
{
    for (int32_t k = a->row_start[row]; k < a->row_start[row + 1]; k++) {
        int32_t mirror = matrix_find(a, a->column[k], row);
        if (mirror < 0 || a->value[mirror] != a->value[k])
            return 0;
    }
    return 1;
}

/* By the initial thread: with --init serial nobody else shall have touched the matrix before round
 * 0. */
static const char *check_matrix(const struct linear_system *s)
{
    for (int32_t i = 0; i < s->a.n; i++)
        if (!row_is_right(&s->a, i) || !isfinite(s->right[i]) || !isfinite(s->expected[i]))
            return "it has a row whose columns do not ascend, a diagonal that is not positive, or a value that is no number";
    for (int32_t i = 0; i < s->a.n; i++)
        if (!row_is_symmetric(&s->a, i))
            return "its matrix is not symmetric";
    return NULL;
}

static const char *read_part(FILE *file, const struct part *part)
{
    if (fread(part->array, part->size, part->count, file) == part->count)
        return NULL;
    return ferror(file) ? strerror(errno) : "it ends too early";
}

static const char *read_parts(FILE *file, struct linear_system *s, const int64_t head[HEAD_WORDS], int parallel)
{
    struct part parts[PARTS];
    const char *wrong = NULL;
    if (parallel)
        touch_vectors(s);
    list_parts(s, parts);
    for (int p = 0; p < PARTS && !wrong; p++) {
        wrong = read_part(file, &parts[p]);
        if (p == 0 && !wrong && !starts_are_right(&s->a))
            wrong = "its row starts do not ascend from 0 to the number of entries";
        if (p == 0 && !wrong && parallel)
            touch_rows(&s->a);
    }
    if (wrong)
        return wrong;
    struct checksum sum = sum_of(parts);
    if (sum.first != (uint64_t)head[HEAD_FIRST_SUM] || sum.second != (uint64_t)head[HEAD_SECOND_SUM])
        return "its checksum is wrong: it was changed after it was written";
    return check_matrix(s);
}

/* With the four vectors of the solver. */
static int fits_memory(const int64_t head[HEAD_WORDS])
{
    return 12.0 * (double)head[HEAD_ENTRIES] + (4.0 + 6.0 * 8.0) * (double)head[HEAD_ROWS] <= kernel_available_bytes();
}

static void allocate(struct linear_system *s, const int64_t head[HEAD_WORDS])
{
    size_t n = (size_t)head[HEAD_ROWS], entries = (size_t)head[HEAD_ENTRIES];
    s->cells = (int32_t)head[HEAD_CELLS];
    s->a.n = (int32_t)n;
    s->a.entries = (int32_t)entries;
    s->a.row_start = kernel_allocate(n + 1, sizeof *s->a.row_start, "row starts");
    s->a.column = kernel_allocate(entries, sizeof *s->a.column, "columns");
    s->a.value = kernel_allocate(entries, sizeof *s->a.value, "values");
    s->right = kernel_allocate(n, sizeof *s->right, "the right-hand side");
    s->expected = kernel_allocate(n, sizeof *s->expected, "the expected solution");
}

const char *system_read(FILE *file, struct linear_system *s, int parallel)
{
    int64_t head[HEAD_WORDS];
    memset(s, 0, sizeof *s);
    errno = 0;
    long length = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    if (length < 0 || fseek(file, 0, SEEK_SET))
        return strerror(errno);
    if (fread(head, sizeof head, 1, file) != 1)
        return ferror(file) ? strerror(errno) : "it is too short to be a matrix file of i-cg";
    const char *wrong = check_head(head, length);
    if (wrong)
        return wrong;
    if (!fits_memory(head))
        return "its matrix takes more memory than is available";
    allocate(s, head);
    return read_parts(file, s, head, parallel);
}

void matrix_free(struct matrix *a)
{
    free(a->row_start);
    free(a->column);
    free(a->value);
}

void system_free(struct linear_system *s)
{
    matrix_free(&s->a);
    free(s->right);
    free(s->expected);
}
