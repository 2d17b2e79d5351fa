// run: nothing-seen unbound=nothing-seen rounds=1400 lab=350
// Threads of the program's own with a barrier that spins: homenode sees no region of theirs.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1 << 20, THREADS = 2 };

static double *field;
static int rounds = 1400;
static atomic_int arrived, generation;

static void wait_for_all(void) {
    const int mine = generation;
    if (++arrived == THREADS) {
        arrived = 0;
        generation++;
    }
    while (generation == mine) sched_yield();
}

static void *work(void *number) {
    const long me = (long)number, from = me * CELLS / THREADS, to = (me + 1) * CELLS / THREADS;
    for (int round = 0; round < rounds; round++) {
        for (long i = from; i < to; i++) field[i] = 0.5 * field[i] + round;
        wait_for_all();
    }
    return 0;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    if (argc > 1) rounds = atoi(argv[1]);
    field = malloc(CELLS * sizeof *field);
    if (!field) return 1;
    for (long i = 0; i < CELLS; i++) field[i] = i;
    for (long n = 0; n < THREADS; n++) pthread_create(&threads[n], 0, work, (void *)n);
    for (int n = 0; n < THREADS; n++) pthread_join(threads[n], 0);
    printf("%g\n", field[77]);
    return 0;
}
