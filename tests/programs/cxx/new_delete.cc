// Every form of operator new and delete; placement; arrays with destructors; aligned types.
#include <cstdint>
#include <cstdio>
#include <new>

static int alive;
struct Thing { long v[5]; Thing() { alive++; v[0] = alive; } ~Thing() { alive--; } };
struct alignas(256) Wide { double d[40]; ~Wide() { alive -= 10; } };

int main() {
    Thing *a = new Thing, *b = new Thing[17], *c = new (std::nothrow) Thing;
    Wide *w = new Wide, *x = new Wide[3], *y = new (std::nothrow) Wide;
    long sum = 0;
    for (int i = 0; i < 17; i++) sum += b[i].v[0];
    alignas(Thing) char place[sizeof(Thing)];
    Thing *p = new (place) Thing;
    std::printf("%d %ld %d %d\n", alive, sum, (int)(reinterpret_cast<std::uintptr_t>(w) % 256),
                (int)(reinterpret_cast<std::uintptr_t>(x) % 256));
    p->~Thing();
    delete a; delete[] b; delete c; delete w; delete[] x; delete y;
    void *raw = ::operator new(100), *al = ::operator new(100, std::align_val_t(128));
    ::operator delete(raw); ::operator delete(al, std::align_val_t(128));
    raw = ::operator new[](50, std::nothrow);
    ::operator delete[](raw, std::nothrow);
    al = ::operator new(64, std::align_val_t(64), std::nothrow);
    ::operator delete(al, std::align_val_t(64), std::nothrow);
    std::printf("%d\n", alive);
    return 0;
}
