/* longjmp out of instrumented calls, also out of a signal handler. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static jmp_buf env;
static sigjmp_buf senv;
static long depth[200];

static void descend(int n) {
    char pad[300];
    memset(pad, n, sizeof pad);
    depth[n] = pad[299] + n;
    if (n == 150) longjmp(env, n);
    descend(n + 1);
    depth[n] += pad[0];
}
static void on_segv(int s) { siglongjmp(senv, s); }

int main(void) {
    volatile int rounds = 0, faults = 0;
    for (volatile int i = 0; i < 100; i = i + 1) {
        int r = setjmp(env);
        if (r == 0)
            descend(0);
        else
            rounds += r;
    }
    struct sigaction a = {.sa_handler = on_segv};
    sigaction(SIGSEGV, &a, NULL);
    for (volatile int i = 0; i < 10; i = i + 1) {
        if (sigsetjmp(senv, 1) == 0) {
            volatile int *volatile null = NULL;
            *null = 1;
        } else {
            faults++;
        }
    }
    long sum = 0;
    for (int i = 0; i < 200; i++) sum += depth[i];
    printf("%d %d %ld\n", rounds, faults, sum);
    return 0;
}
