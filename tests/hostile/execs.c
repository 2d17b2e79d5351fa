/* exec from armed memory, also one that fails, and from a thread. */
#include "hostile.h"

static void *replace(void *args) {
    execv("/proc/self/exe", args);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            if (strlen(argv[i]) != 2000) return 1;
        return done();
    }
    size_t n = 2 * MiB;
    uint64_t *p = malloc(n);
    fill(p, n, 1);
    double end = end_time();
    char *nothing[] = {NULL};
    while (now() < end) {
        must(execve("/no/such/program", nothing, nothing) < 0 && errno == ENOENT, "exec that fails");
        check(p, n, 1, "after an exec that failed");
        usleep(1000);
    }
    char **args = malloc(MiB);
    args[0] = argv[0];
    for (int i = 1; i < 50; i++) {
        args[i] = (char *)p + i * 2 * PAGE;
        memset(args[i], 'a' + i % 26, 2000);
        args[i][2000] = 0;
    }
    args[50] = NULL;
    usleep(5000);
    pthread_t t;
    must(!pthread_create(&t, NULL, replace, args), "pthread_create");
    pthread_join(t, NULL);
    return 1;
}
