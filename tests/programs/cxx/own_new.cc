// A program that replaces operator new and delete: the recorder must call its versions. A
// new_handler, too.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

int made, freed;
void *operator new(std::size_t n) {
    made++;
    if (void *p = std::malloc(n)) return p;
    throw std::bad_alloc();
}
void operator delete(void *p) noexcept { freed++; std::free(p); }
void operator delete(void *p, std::size_t) noexcept { freed++; std::free(p); }

int main() {
    for (int i = 0; i < 10; i++) {
        std::vector<int> v(1000, i);
        auto *s = new std::string(100, 'a');
        delete s;
    }
    std::printf("%d %d %d\n", made >= 30, freed >= 30, made == freed);
    return 0;
}
