// run: contested array=table rounds=1500 lab=175
// One thread fills a table that all threads then read at random.
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 1 << 20, READS = 1 << 18 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1500;
    double *table = malloc(sizeof(double) * ENTRIES);
    double sum = 0;
    if (!table) return 1;
    for (long i = 0; i < ENTRIES; i++) table[i] = i;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (long i = 0; i < READS; i++) {
            // Other entries in each round.
            unsigned long at = (i + (unsigned long)round * READS) * 0x9e3779b97f4a7c15ul;
            at = (at ^ at >> 29) * 0xbf58476d1ce4e5b9ul;
            sum += table[at >> 44];
        }
    }
    printf("%g\n", sum);
    return 0;
}
