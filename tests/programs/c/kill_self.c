/* SIGKILL in the middle of a region: what was flushed must be readable. */
#include <omp.h>
#include <signal.h>
#include <stdio.h>

static double a[100000];
int main(void) {
#pragma omp parallel for
    for (int i = 0; i < 100000; i++) a[i] = i;
    printf("before %g\n", a[99999]);
    fflush(stdout);
#pragma omp parallel for schedule(static, 1000)
    for (int i = 0; i < 100000; i++) {
        a[i] += 1;
        if (i == 99999) raise(SIGKILL);
    }
    printf("never\n");
    return 0;
}
