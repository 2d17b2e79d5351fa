// What it costs to move a page to another node while the other CPUs of the process sleep, and while they spin.
// Prints two numbers: nanoseconds a page.
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

enum { ASLEEP = 256, SPINNING = 16, PAGE = 4096, MOVE = 2 };

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
    clock_gettime(CLOCK_MONOTONIC, &a);
    long moved = syscall(SYS_move_pages, 0, (long)pages, all, nodes, status, MOVE);
    clock_gettime(CLOCK_MONOTONIC, &b);
    for (int i = 0; i < pages; i++)
        if (moved < 0 || status[i] != node) {
            fprintf(stderr, "page %d is on node %d, not %d\n", i, status[i], node);
            exit(1);
        }
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
