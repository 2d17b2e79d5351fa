/* A child that starts its own first parallel region: the parent has had none. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long work(int factor) {
    static long v[8000];
    long s = 0;
#pragma omp parallel for
    for (int i = 0; i < 8000; i++) v[i] = (long)i * factor;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 8000; i++) s += v[i];
    return s;
}

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        printf("child %ld\n", work(3));
        return 4;
    }
    int status;
    waitpid(child, &status, 0);
    printf("status %d parent %ld\n", WEXITSTATUS(status), work(5));
    return 0;
}
