// run: pays array=field rounds=800 lab=600
// A pipeline as in NAS LU: a thread waits for its neighbour by a flag in a static array. One thread
// initialises the array.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLANES = 64, ROWS = 128, COLUMNS = 128, THREADS = 1024 };

static volatile int flag[THREADS][16];

static void sweep(double *field) {
#pragma omp parallel
    {
        const int me = omp_get_thread_num(), team = omp_get_num_threads();
        const long from = 1 + (ROWS - 1L) * me / team, to = 1 + (ROWS - 1L) * (me + 1) / team;
        flag[me][0] = 0;
#pragma omp barrier
        for (long plane = 0; plane < PLANES; plane++) {
            if (me > 0)
                while (flag[me - 1][0] <= plane) {
#pragma omp flush
                }
            for (long i = from; i < to; i++)
                for (long j = 1; j < COLUMNS; j++) {
                    double *at = field + (plane * ROWS + i) * COLUMNS + j;
                    *at = 0.3 * (*at + at[-1] + at[-COLUMNS]);
                }
#pragma omp flush
            flag[me][0] = plane + 1;
#pragma omp flush
        }
    }
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 800;
    double *field = malloc(sizeof(double) * PLANES * ROWS * COLUMNS);
    if (!field) return 1;
    for (long i = 0; i < (long)PLANES * ROWS * COLUMNS; i++) field[i] = i % 7;
    for (int round = 0; round < rounds; round++) sweep(field);
    printf("%g\n", field[PLANES * ROWS * COLUMNS - 1L]);
    return 0;
}
