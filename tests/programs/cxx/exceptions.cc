// Exceptions across functions, in constructors, rethrown, inside parallel regions (caught inside),
// from operator new.
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

static int destroyed;
struct Guard {
    std::vector<int> v = std::vector<int>(100, 1);
    ~Guard() { destroyed++; }
};
struct Bad {
    Guard g;
    Bad(int n) { if (n % 3 == 0) throw std::runtime_error("bad " + std::to_string(n)); }
};
static int deep(int n) {
    Guard g;
    if (n == 0) throw std::out_of_range("deep");
    return deep(n - 1) + g.v[n % 100];
}
static void nothing() noexcept {}

int main() {
    int caught = 0, rethrown = 0, oom = 0;
    for (int i = 0; i < 20; i++) {
        try {
            Bad b(i);
            deep(i);
        } catch (const std::out_of_range &) {
            caught++;
        } catch (const std::exception &e) {
            caught += 100;
            if (i == 3) std::printf("%s\n", e.what());
        }
    }
    try {
        try { deep(3); } catch (...) { rethrown++; throw; }
    } catch (const std::exception &) { rethrown++; }
    int in_region = 0;
#pragma omp parallel for reduction(+ : in_region)
    for (int i = 0; i < 200; i++) {
        try { deep(i % 7); } catch (const std::out_of_range &) { in_region++; }
    }
    volatile std::size_t huge = static_cast<std::size_t>(1) << 60;
    try { char *p = new char[huge]; p[0] = 1; } catch (const std::bad_alloc &) { oom++; }
    try { std::vector<double> v(huge / 16); } catch (const std::bad_alloc &) { oom++; }
    oom += new (std::nothrow) char[huge] == nullptr;
    auto p = std::make_exception_ptr(5);
    try { std::rethrow_exception(p); } catch (int n) { oom += n; }
    nothing();
    std::printf("%d %d %d %d %d\n", caught, rethrown, in_region, oom, destroyed > 0);
    return 0;
}
