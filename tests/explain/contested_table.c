// explain: variable=table line=9 touched=12 fix=interleave effect with=numactl,--interleave=all
// One thread fills a table that all threads then read at random. All traffic goes to one node.
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 1 << 20, READS = 1 << 16 };

int main(void) {
    double *table = malloc(sizeof(double) * ENTRIES);
    double sum = 0;
    if (!table) return 1;
    for (long i = 0; i < ENTRIES; i++) table[i] = i;
    for (int round = 0; round < 8; round++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (long i = 0; i < 8 * READS; i++) {
            unsigned long at = (i + round) * 0x9e3779b97f4a7c15ul;
            sum += table[at >> 44];
        }
    }
    printf("%g\n", sum);
    return 0;
}
