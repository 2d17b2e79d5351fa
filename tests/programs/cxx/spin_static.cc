// Threads wait for plain flags with flush, as LU of NPB in C++ does. The flags are statics of this
// file, a scalar and an array. Nobody takes their address, so that the compiler knows who writes
// them.
#include <cstdio>
#include <omp.h>

static int turn;
static int ready[64];
static double row[64][256];

__attribute__((noinline)) static void wait_for(int thread) {
    while (turn != thread) {
#pragma omp flush
    }
}

int main() {
    const int rounds = 200;
#pragma omp parallel num_threads(4)
    {
        const int me = omp_get_thread_num(), all = omp_get_num_threads();
        for (int k = 0; k < rounds; k++) {
            wait_for(me);
            for (int i = 0; i < 256; i++) row[me][i] = (me ? row[me - 1][i] : k) + 1;
#pragma omp flush
            turn = (me + 1) % all;
#pragma omp flush
        }
        for (int k = 0; k < rounds; k++) {
            if (me) {
                while (!ready[me - 1]) {
#pragma omp flush
                }
                ready[me - 1] = 0;
#pragma omp flush
            }
            for (int i = 0; i < 256; i++) row[me][i] = (me ? row[me - 1][i] : k) + 1;
            if (me + 1 < all) {
#pragma omp flush
                while (ready[me]) {
#pragma omp flush
                }
                ready[me] = 1;
#pragma omp flush
            }
        }
    }
    double sum = 0;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 256; i++) sum += row[t][i];
    std::printf("%.0f\n", sum);
    return 0;
}
