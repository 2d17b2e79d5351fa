/* fork between parallel regions. The child works without OpenMP (a libgomp team does not survive
 * fork). */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long v[5000];
static long sum(void) {
    long s = 0;
    for (int i = 0; i < 5000; i++) s += v[i];
    return s;
}

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 5000; i++) v[i] = i;
    fflush(stdout);
    for (int kind = 0; kind < 2; kind++) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 5000; i++) v[i] += 1;
            if (sum() != 4999L * 5000 / 2 + 5000) _exit(99);
            if (kind == 0) _exit(21);
            char *p = malloc(100000);
            for (int i = 0; i < 100000; i++) p[i] = (char)i;
            printf("child %d\n", p[65]);
            exit(22);
        }
        int status;
        if (waitpid(child, &status, 0) != child) return 1;
        printf("child %d: exited %d with %d\n", kind, WIFEXITED(status), WEXITSTATUS(status));
        fflush(stdout);
#pragma omp parallel for
        for (int i = 0; i < 5000; i++) v[i] *= 2;
        printf("parent %ld\n", sum());
        fflush(stdout);
#pragma omp parallel for
        for (int i = 0; i < 5000; i++) v[i] /= 2;
    }
    return 0;
}
