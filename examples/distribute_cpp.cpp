// A stencil over a grid in blocks: each thread sweeps the rows of its node.
//
//   c++ -fopenmp distribute_cpp.cpp $(pkg-config --cflags --libs homenode) -o distribute_cpp
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#include <homenode.h>

#include <cstdio>
#include <vector>

int main() {
    const std::size_t rows = 600, columns = 512;
    std::vector<double> from(rows * columns, 1.0), to(rows * columns, 0.0);
    homenode::distribution a(from.data(), {rows, columns}, {HN_BLOCK, HN_STAR});
    homenode::distribution b(to.data(), {rows, columns}, {HN_BLOCK, HN_STAR});
    if ((a.code() != HN_OK && a.code() != HN_IDLE) || b.code() != a.code()) {
        std::fprintf(stderr, "distribute_cpp: %s: %s\n", hn_message(a.code()), hn_last_error());
        return 1;
    }
    for (int round = 0; round < 4; round++) {
#pragma omp parallel
        for (std::size_t i : b.mine(0))
            for (std::size_t j = 0; j < columns; j++) {
                const std::size_t up = i ? i - 1 : i, down = i + 1 < rows ? i + 1 : i;
                to[i * columns + j] += (from[up * columns + j] + from[down * columns + j]) / 2;
            }
    }
    double sum = 0;
    for (double x : to)
        sum += x;
    if (sum != 4.0 * rows * columns) {
        std::fprintf(stderr, "distribute_cpp: the sum is %g, not %g\n", sum, 4.0 * rows * columns);
        return 1;
    }
    hn_spread found;
    a.verify(&found);
    std::printf("%d parts: %llu of %llu pages at home, %llu of %llu bytes rounded away\n", a.handle().grid[0],
                (unsigned long long)found.there, (unsigned long long)found.pages, (unsigned long long)found.stray,
                (unsigned long long)found.bytes);
    // Rows dealt in turn, then a team of another size: every row still has one thread.
    if (a.redistribute({HN_CYCLIC(8), HN_STAR}, 3) > HN_IDLE)
        return 1;
    std::vector<int> owners(rows, 0);
#pragma omp parallel num_threads(2)
    for (std::size_t i : a.mine(0))
        owners[i]++;
    for (int n : owners)
        if (n != 1) {
            std::fprintf(stderr, "distribute_cpp: a row has %d threads\n", n);
            return 1;
        }
    std::printf("ok\n");
}
