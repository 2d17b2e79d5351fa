/* Loads an instrumented library (argv[1]) while running, uses it from threads, unloads it, loads it
 * again. */
#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    for (int round = 0; round < 2; round++) {
        void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!lib) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        long (*work)(int) = (long (*)(int))dlsym(lib, "plugin_work");
        long (*in_parallel)(int) = (long (*)(int))dlsym(lib, "plugin_parallel");
        if (!work || !in_parallel) return 1;
        long sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 8; i++) sum += work(i);
        printf("%ld %ld\n", sum, in_parallel(1000));
        if (dlclose(lib)) return 1;
    }
    return 0;
}
