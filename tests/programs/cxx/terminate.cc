// An exception that nobody catches: abort, and output before it.
#include <cstdio>
#include <exception>
#include <stdexcept>

int main() {
    std::set_terminate([] { std::printf("terminate\n"); std::fflush(stdout); __builtin_trap(); });
    std::printf("before\n");
    std::fflush(stdout);
    throw std::runtime_error("nobody");
}
