/* Parallel regions in parallel regions. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    long cell[4][2][256];
    omp_set_max_active_levels(2);
    omp_set_dynamic(0);
    for (int round = 0; round < 3; round++) {
#pragma omp parallel num_threads(2)
        {
            int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2) firstprivate(outer)
            {
                int inner = omp_get_thread_num();
                for (int i = 0; i < 256; i++) cell[outer][inner][i] = outer * 1000 + inner * 100 + i + round;
            }
        }
    }
    long sum = 0;
    for (int o = 0; o < 2; o++)
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 256; i++) sum += cell[o][n][i] * (o * 2 + n + 1);
    printf("%ld\n", sum);
    return 0;
}
