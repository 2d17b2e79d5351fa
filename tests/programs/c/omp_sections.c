/* sections, single, master, copyprivate, critical, atomic, barrier, flush. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int seen[3] = {0, 0, 0}, singles = 0, masters = 0, unnamed = 0, named = 0, atomics = 0, captured = 0, team = 0;
    int copied = 0;
#pragma omp parallel shared(seen)
    {
#pragma omp sections
        {
#pragma omp section
            seen[0] = 10;
#pragma omp section
            seen[1] = 20;
#pragma omp section
            seen[2] = 30;
        }
#pragma omp single
        {
            singles++;
            team = omp_get_num_threads();
        }
#pragma omp single nowait
        singles++;
#pragma omp barrier
#pragma omp master
        masters++;
        int value = 0;
#pragma omp single copyprivate(value)
        value = 42;
#pragma omp critical
        {
            unnamed += 2;
            copied += value;
        }
#pragma omp critical(other)
        named += 3;
#pragma omp atomic
        atomics += 5;
        int old;
#pragma omp atomic capture
        old = captured++;
        (void)old;
#pragma omp flush
    }
#pragma omp parallel sections reduction(+ : atomics)
    {
#pragma omp section
        atomics += 1;
#pragma omp section
        atomics += 1;
    }
    double x = 0;
#pragma omp parallel for
    for (int i = 0; i < 1000; i++) {
#pragma omp atomic
        x += 0.5;
    }
    printf("team %d seen %d %d %d singles %d masters %d copied %d unnamed %d named %d atomics %d captured %d x %g\n", team,
           seen[0], seen[1], seen[2], singles, masters, copied, unnamed, named, atomics, captured, x);
    return 0;
}
