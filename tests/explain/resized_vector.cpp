// explain: variable=particles line=12 touched=12 fix=parallel-first-touch
// A vector grows between the rounds; the thread that calls resize() touches all of the new memory.
#include <cstdio>
#include <vector>

int main() {
    std::vector<double> particles;
    double sum = 0;
    for (int step = 0; step < 3; step++) {
        // The old elements are copied, the new ones are set to 0: by this thread.
        const long count = (1L << 20) + step * (1L << 16);
        particles.resize(count);
        for (int round = 0; round < 4; round++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
            for (long i = 0; i < count; i++) {
                particles[i] += 0.5;
                sum += particles[i];
            }
        }
    }
    std::printf("%g\n", sum);
}
