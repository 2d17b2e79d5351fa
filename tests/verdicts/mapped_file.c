// run: pays array=sums rounds=1400 lab=350
// All threads read a file that is mapped; one thread initialises the array beside it.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CELLS = 1 << 20 };

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1400;
    char name[] = "/tmp/mapped-XXXXXX";
    const int file = mkstemp(name);
    if (file < 0 || ftruncate(file, CELLS * sizeof(double))) return 1;
    unlink(name);
    const double *input = mmap(0, CELLS * sizeof *input, PROT_READ, MAP_SHARED, file, 0);
    double *sums = malloc(CELLS * sizeof *sums);
    if (input == MAP_FAILED || !sums) return 1;
    for (long i = 0; i < CELLS; i++) sums[i] = i;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < CELLS; i++) sums[i] = 0.5 * sums[i] + input[i];
    }
    printf("%g\n", sums[77]);
    return 0;
}
