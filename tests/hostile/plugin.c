/* dlopen and dlclose of a library. Its large array may be armed, its constructor waits for a thread
 * of its own, and its destructor frees armed memory. Built twice: as the library and as the
 * program. */
#include "hostile.h"
#include <dlfcn.h>
#include <sys/utsname.h>

#ifdef PLUGIN
uint64_t table[MiB / 8];
uint64_t *get(void) { return table; }

/* What goes with the library: a block of the heap's, and a mapping. */
static uint64_t *own[2];
uint64_t *get_own(int which) { return own[which]; }

static void *asks(void *name) {
    struct utsname *n = name;
    return uname(n) ? NULL : n;
}

__attribute__((constructor)) static void takes_memory(void) {
    own[0] = malloc(MiB);
    own[1] = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(own[0] && own[1] != MAP_FAILED, "memory");
}

__attribute__((destructor)) static void gives_it_back(void) {
    free(own[0]);
    must(!munmap(own[1], MiB), "munmap");
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
    for (int round = 0; now() < end; round++) {
        void *lib = dlopen(argv[1], RTLD_NOW);
        must(lib != NULL, "dlopen");
        uint64_t *(*get)(void) = (uint64_t * (*)(void)) dlsym(lib, "get");
        uint64_t *(*get_own)(int) = (uint64_t * (*)(int)) dlsym(lib, "get_own");
        uint64_t *t = get();
        for (size_t i = 0; i < MiB / 8; i++) wrong_bytes += t[i] ? 8 : 0;
        fill(t, MiB, 3);
        for (int i = 0; i < 2; i++) fill(get_own(i), MiB, 4);
        usleep(1500);
        check(t, MiB, 3, "the library's array");
        check(p, n, 2, "the program's");
        check(get_own(round % 2), MiB, 4, "what goes with the library");
        /* Armed when it goes: by turns the block and the mapping, of which the other was touched
         * last. */
        wait_until_armed(get_own(!(round % 2)), MiB, "what goes with the library");
        must(!dlclose(lib), "dlclose");
    }
    return done();
}
#endif
