/* exec from armed memory, in all ways, also one that fails, and from a thread. */
#include "hostile.h"

enum { LONG = 2000 };

static char *memory;

/* Text in memory of its own, which says by its first character which way comes next. */
static char *text(int i, char first) {
    char *t = memory + (size_t)i * 2 * PAGE;
    memset(t, 'a' + i % 26, LONG);
    t[0] = first;
    t[LONG] = 0;
    return t;
}

/* How many arguments are as they were; more than have place in registers. */
static int right(int argc, char **argv) {
    int n = 0;
    for (int i = 1; i < argc; i++) n += strlen(argv[i]) == LONG && argv[i][1] == 'a' + i % 26;
    return n;
}

static void *replace(void *args) {
    execv("/proc/self/exe", args);
    return NULL;
}

int main(int argc, char **argv) {
    size_t n = 2 * MiB;
    memory = malloc(n);
    must(memory != NULL, "malloc");
    fill((uint64_t *)(void *)memory, n, 1);
    if (argc > 1) {
        must(argc == (argv[1][0] == '1' ? 50 : 10) && right(argc, argv) == argc - 1, "arguments");
        if (argv[1][0] == '4') {
            must(getenv("HOSTILE_ENV") && strlen(getenv("HOSTILE_ENV")) == LONG - 12, "environment");
            return done();
        }
        int way = argv[1][0] - '0';
        char *a[10];
        for (int i = 1; i < 10; i++) a[i] = text(i, (char)('1' + way));
        char *path = strcpy(text(20, ' '), "/proc/self/exe");
        char **env = (char **)(void *)text(22, ' ');
        env[0] = memcpy(text(24, ' '), "HOSTILE_ENV=", 12);
        env[1] = NULL;
        wait_until_armed(memory, n, "the next program's arguments");
        errno = 0;
        if (way == 1) execl(path, path, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], NULL);
        if (way == 2) execlp(path, path, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], NULL);
        if (way == 3) execle(path, path, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], NULL, env);
        must(0, way == 1 ? "execl" : way == 2 ? "execlp" : "execle");
    }
    double end = end_time();
    char *nothing[] = {NULL};
    while (now() < end) {
        must(execve("/no/such/program", nothing, nothing) < 0 && errno == ENOENT, "exec that fails");
        must(execl("/no/such/program", "a", "b", "c", "d", "e", "f", "g", NULL) < 0 && errno == ENOENT,
             "execl that fails");
        check((uint64_t *)(void *)memory, n, 1, "after an exec that failed");
        usleep(1000);
    }
    char **args = malloc(MiB);
    args[0] = argv[0];
    for (int i = 1; i < 50; i++) args[i] = text(i, '1');
    args[50] = NULL;
    wait_until_armed(memory, n, "arguments");
    pthread_t t;
    must(!pthread_create(&t, NULL, replace, args), "pthread_create");
    pthread_join(t, NULL);
    return 1;
}
