// What it costs to move a page to another node while the other CPUs of the process sleep, and while
// they spin. Prints two numbers: nanoseconds a page.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ASLEEP = 256, SPINNING = 16, PAGE = 4096, MOVE = 2, TRIES = 100 };

static atomic_int spin;
static pthread_barrier_t team;

static void *member(void *unused) {
    (void)unused;
    pthread_barrier_wait(&team); // everybody is there
    pthread_barrier_wait(&team); // asleep until here
    while (atomic_load_explicit(&spin, memory_order_relaxed)) {
    }
    return NULL;
}

static double move(char *memory, int pages, int node) {
    void **all = calloc((size_t)pages, sizeof *all);
    int *nodes = calloc((size_t)pages, sizeof *nodes), *status = calloc((size_t)pages, sizeof *status);
    if (!all || !nodes || !status) exit(99);
    for (int i = 0; i < pages; i++) {
        all[i] = memory + (long)i * PAGE;
        nodes[i] = node;
        memory[(long)i * PAGE] = 1;
    }
    struct timespec a, b;
    int left = pages, at = node;
    clock_gettime(CLOCK_MONOTONIC, &a);
    // A page can be busy, on a CPU's list of new pages for example: those that are still elsewhere
    // are asked for again.
    for (int tries = 0; left > 0 && tries < TRIES; tries++) {
        syscall(SYS_move_pages, 0, (long)left, all, nodes, status, MOVE);
        if (syscall(SYS_move_pages, 0, (long)left, all, NULL, status, 0) != 0) {
            perror("move_pages");
            exit(1);
        }
        int still = 0;
        for (int i = 0; i < left; i++)
            if (status[i] != node) {
                at = status[i];
                all[still++] = all[i];
            }
        left = still;
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (left > 0) {
        fprintf(stderr, "%d of %d pages are not on node %d after %d tries; the last is on %d\n", left, pages, node, TRIES, at);
        exit(1);
    }
    free(all), free(nodes), free(status);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / pages;
}

int main(void) {
    int others = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
    char *memory = mmap(NULL, (ASLEEP + SPINNING) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 99;
    pthread_barrier_init(&team, NULL, (unsigned)others + 1);
    pthread_t threads[64];
    for (int i = 0; i < others && i < 64; i++) pthread_create(&threads[i], NULL, member, NULL);
    pthread_barrier_wait(&team);
    double asleep = move(memory, ASLEEP, 1);
    atomic_store(&spin, 1);
    pthread_barrier_wait(&team);
    double spinning = move(memory + ASLEEP * PAGE, SPINNING, 1);
    atomic_store(&spin, 0);
    for (int i = 0; i < others && i < 64; i++) pthread_join(threads[i], NULL);
    printf("%.0f %.0f\n", asleep, spinning);
    return 0;
}
