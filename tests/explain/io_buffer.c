// explain: variable=buffer line=14 touched=10 fix=parallel-first-touch effect
// The first thread reads each frame into a buffer; all threads then go through it several times.
#include <stdio.h>
#include <stdlib.h>

enum { FRAME = 1 << 20, PASSES = 4 };

static void next_frame(double *into, int round) {
    // Stands for read(): the first thread writes all of the buffer.
    for (long i = 0; i < FRAME; i++) into[i] = round;
}

int main(void) {
    double *buffer = malloc(sizeof(double) * FRAME);
    double sum = 0;
    if (!buffer) return 1;
#ifdef FIXED
#pragma omp parallel for schedule(static)
    for (long i = 0; i < FRAME; i++) buffer[i] = 0;
#endif
    for (int round = 0; round < 8; round++) {
        next_frame(buffer, round);
        for (int pass = 0; pass < PASSES; pass++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
            for (long i = 0; i < FRAME; i++) sum += buffer[i];
        }
    }
    printf("%g\n", sum);
    return 0;
}
