/* dlopen and dlclose of a library whose large array may be armed, and whose constructor waits for a thread of its own. Built twice: as the library and as the program. */
#include "hostile.h"
#include <dlfcn.h>
#include <sys/utsname.h>

#ifdef PLUGIN
uint64_t table[MiB / 8];
uint64_t *get(void) { return table; }

static void *asks(void *name) {
    struct utsname *n = name;
    return uname(n) ? NULL : n;
}

/* Waits for a thread, with what the loader holds meanwhile. */
__attribute__((constructor)) static void waits(void) {
    static struct utsname name;
    pthread_t thread;
    void *told;
    must(!pthread_create(&thread, NULL, asks, &name) && !pthread_join(thread, &told) && told, "uname");
}
#else
int main(int argc, char **argv) {
    must(argc == 2, "the library's path");
    double end = end_time();
    size_t n = 4 * MiB;
    uint64_t *p = malloc(n);
    fill(p, n, 2);
    while (now() < end) {
        void *lib = dlopen(argv[1], RTLD_NOW);
        must(lib != NULL, "dlopen");
        uint64_t *(*get)(void) = (uint64_t * (*)(void)) dlsym(lib, "get");
        uint64_t *t = get();
        for (size_t i = 0; i < MiB / 8; i++) wrong_bytes += t[i] ? 8 : 0;
        fill(t, MiB, 3);
        usleep(1500);
        check(t, MiB, 3, "the library's array");
        check(p, n, 2, "the program's");
        must(!dlclose(lib), "dlclose");
    }
    return done();
}
#endif
