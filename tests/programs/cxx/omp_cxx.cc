// OpenMP in C++: classes as private variables, reductions over members, tasks with objects, range
// of iterators.
#include <cstdio>
#include <numeric>
#include <vector>

struct Grid {
    int n;
    std::vector<double> a, b;
    explicit Grid(int k) : n(k), a(k * k), b(k * k) {}
    void step() {
#pragma omp parallel for collapse(2) schedule(static)
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                b[i * n + j] = 0.25 * (a[(i - 1) * n + j] + a[(i + 1) * n + j] + a[i * n + j - 1] + a[i * n + j + 1]);
        a.swap(b);
    }
};
struct Private { std::vector<int> v = std::vector<int>(64, 1); };

int main() {
    Grid g(128);
    for (int i = 0; i < g.n; i++) g.a[i] = g.b[i] = 1;
    for (int t = 0; t < 20; t++) g.step();
    long inside = 0;
    Private p;
#pragma omp parallel firstprivate(p) reduction(+ : inside)
    {
        p.v[0] = 5;
#pragma omp for
        for (int i = 0; i < 256; i++) inside += p.v[i % 64];
    }
    std::vector<long> out(100);
#pragma omp parallel
#pragma omp single
    for (auto it = out.begin(); it != out.end(); ++it) {
#pragma omp task firstprivate(it)
        *it = (it - out.begin()) * 2;
    }
    std::printf("%.17g %ld %ld\n", g.a[5 * 128 + 64], inside, std::accumulate(out.begin(), out.end(), 0L));
    return 0;
}
