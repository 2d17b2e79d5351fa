// explain: variable=particles line=34 touched=34 fix=parallel-first-touch effect
// A vector grows between the rounds; the thread that calls resize() touches all of the new memory.
#include <cstdio>
#include <memory>
#include <vector>

#ifdef FIXED
// Leaves new elements as they are.
template <class T> struct Untouched : std::allocator<T> {
    template <class U> struct rebind {
        using other = Untouched<U>;
    };
    template <class U> void construct(U *) {}
    template <class U, class... Args> void construct(U *at, Args &&...args) { new (at) U(args...); }
};
using Vector = std::vector<double, Untouched<double>>;
#else
using Vector = std::vector<double>;
#endif

static long size(int step) { return (1L << 20) + step * (1L << 16); }

int main() {
    Vector particles;
    double sum = 0;
#ifdef FIXED
    particles.resize(size(2));
#pragma omp parallel for schedule(static)
    for (long i = 0; i < size(2); i++) particles[i] = 0;
#endif
    for (int step = 0; step < 3; step++) {
        // The old elements are copied, the new ones are set to 0: by this thread.
        const long count = size(step);
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
