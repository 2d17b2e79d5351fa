/* What programs print of the rights of their threads. Included after "hostile.h". */

#include <dirent.h>

static void tell(const char *what, long result) {
    printf("%s: %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

/* Of every thread of the process, what of it counts for security. */
static void tell_threads(void) {
    DIR *d = opendir("/proc/self/task");
    if (!d) return tell("/proc/self/task", -1);
    static const char *words[] = {"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:",
                                  "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"};
    int threads = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        threads++;
        char path[300], line[512];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f))
            for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                if (!strncmp(line, words[i], strlen(words[i]))) fputs(line, stdout);
        if (f) fclose(f);
    }
    closedir(d);
    printf("threads: %d\n", threads);
}
