/* columns: LU's loops, and how many columns lie on another node than the thread that updates them.
 *
 *   columns EXECUTIONS
 *
 * 512 columns of a page each. `schedule(runtime)` deals both the loop that initialises them and the
 * triangular loop that updates them. After each execution of the triangular loop one line tells its
 * number, the columns elsewhere, and the columns that it updated. Thread t runs on node t. Each
 * iteration ends with a pause, at which emulated CPUs take turns.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { N = 512, PAGE = 4096 };

static double (*column)[N];
static int executed_by[N];

static void initialise(void)
{
#pragma omp parallel for schedule(runtime)
    for (long j = 0; j < N; j++) {
        for (long i = 0; i < N; i++)
            column[j][i] = i == j ? N : 1.0 / (double)(1 + labs(i - j));
        __builtin_ia32_pause();
    }
}

static void update(long k)
{
    for (long i = k + 1; i < N; i++)
        column[k][i] /= column[k][k];
#pragma omp parallel for schedule(runtime)
    for (long j = k + 1; j < N; j++) {
        executed_by[j] = omp_get_thread_num();
        for (long i = k + 1; i < N; i++)
            column[j][i] -= column[j][k] * column[k][i];
        __builtin_ia32_pause();
    }
}

static int elsewhere(long k)
{
    static void *page[N];
    static int node[N];
    int count = 0;
    for (long j = 0; j < N; j++)
        page[j] = column[j];
    if (syscall(SYS_move_pages, 0, (long)N, page, NULL, node, 0)) {
        perror("move_pages");
        exit(99);
    }
    for (long j = k + 1; j < N; j++)
        count += node[j] != executed_by[j];
    return count;
}

int main(int argc, char **argv)
{
    long executions = argc > 1 ? atol(argv[1]) : 2;
    column = aligned_alloc(PAGE, sizeof *column * N);
    if (!column || executions < 1 || executions >= N)
        return 1;
    initialise();
    for (long k = 0; k < executions; k++) {
        update(k);
        printf("%ld: %d of %ld\n", k + 1, elsewhere(k), N - 1 - k);
    }
    free(column);
    return 0;
}
