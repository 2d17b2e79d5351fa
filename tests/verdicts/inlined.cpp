// run: pays array=this->particles rounds=1500 lab=375
// The array is allocated deep in inlined code of a library's headers, on a line of this file.
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Domain {
    std::vector<double> particles;

    void allocate(long count) {
        particles.resize(count);
    }
};

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1500;
    const long count = 1 << 20;
    Domain domain;
    domain.allocate(count);
    double *particles = domain.particles.data();
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; i++) particles[i] = 0.5 * particles[i] + round;
    }
    std::printf("%g\n", particles[77]);
}
