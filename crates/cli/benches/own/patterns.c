/* Stand-ins for programs in which homenode has little or nothing to gain, one for each pattern; the
 * last one gains.
 * usage: patterns PATTERN SECONDS; prints a checksum and its rounds. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, N = 2 * MIB }; /* N doubles are 16 MiB */

static double end;
static int rounds;

static int goes_on(void) { return omp_get_wtime() < end && ++rounds; }

static double *make(size_t n) {
    double *a = malloc(n * sizeof *a);
    if (!a) abort();
    return a;
}

/* Two arrays, first touched by the threads that use them. */
static double parallel(void) {
    double *a = make(N), *b = make(N), s = 0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++) a[i] = b[i] = i;
    while (goes_on()) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) a[i] += b[i];
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) b[i] += 1;
    }
    for (int i = 0; i < N; i += 4096) s += a[i];
    return s;
}

/* The same, first touched by one thread: here moving pays. */
static double serial(void) {
    double *a = make(N), *b = make(N), s = 0;
    for (int i = 0; i < N; i++) a[i] = b[i] = i;
    while (goes_on()) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) a[i] += b[i];
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) b[i] += 1;
    }
    for (int i = 0; i < N; i += 4096) s += a[i];
    return s;
}

/* Each step allocates, uses and frees twelve temporaries of 400 KiB to 1.2 MiB, as LULESH does. */
static double temporaries(void) {
    double s = 0, *field = make(N);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++) field[i] = i;
    while (goes_on()) {
        for (int t = 0; t < 12; t++) {
            int n = 50000 + 10000 * (t % 10);
            double *x = make(n);
#pragma omp parallel for schedule(static)
            for (int i = 0; i < n; i++) x[i] = field[i] * 2;
#pragma omp parallel for schedule(static) reduction(+ : s)
            for (int i = 0; i < n; i++) s += x[i];
            free(x);
        }
    }
    free(field);
    return s;
}

/* Some 10^5 regions of ten microseconds. */
static double regions(void) {
    int n = 1 << 14;
    double *a = make(n), s = 0;
    for (int i = 0; i < n; i++) a[i] = i;
    while (goes_on()) {
        for (int r = 0; r < 100; r++) {
#pragma omp parallel for schedule(static)
            for (int i = 0; i < n; i++) a[i] += 1;
        }
    }
    for (int i = 0; i < n; i++) s += a[i];
    return s;
}

static void __attribute__((noinline)) wait_for_all(void) {
#pragma omp barrier
}

static void __attribute__((noinline)) layer(double *x, const double *w, int from, int to, int k) {
    for (int i = from; i < to; i++) x[i] += w[i] * k;
    wait_for_all();
}

/* One region for the whole run; a barrier follows each of a round's thirty operations
 * (llama.cpp). */
static double barriers(void) {
    double *x = make(N), *w = make(N), s = 0;
    for (int i = 0; i < N; i++) x[i] = 0, w[i] = i;
    int stop = 0;
#pragma omp parallel
    {
        int id = omp_get_thread_num(), all = omp_get_num_threads();
        for (;;) {
#pragma omp master
            stop = !goes_on();
            wait_for_all();
            if (stop) break;
            for (int l = 0; l < 10; l++)
                for (int k = 0; k < 3; k++) {
                    int n = N / 16 * (1 + k), part = n / all;
                    layer(x, w, id * part, (id + 1) * part, k);
                }
        }
    }
    for (int i = 0; i < N; i += 4096) s += x[i];
    return s;
}

/* Tasks over blocks of one array: who takes which is another one each time. */
static double stealing(void) {
    double *a = make(N), s = 0;
    for (int i = 0; i < N; i++) a[i] = i;
    while (goes_on()) {
#pragma omp parallel
#pragma omp single
        for (int b = 0; b < N; b += 8192) {
#pragma omp task firstprivate(b)
            for (int i = b; i < b + 8192; i++) a[i] = a[i] * 0.5 + 1;
        }
    }
    for (int i = 0; i < N; i += 4096) s += a[i];
    return s;
}

/* Workers are forked, each computes in memory that the parent has filled and in some of its own. */
static double forks(void) {
    int n = N / 4;
    double *a = make(n);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++) a[i] = i;
    while (goes_on()) {
        for (int w = 0; w < 4; w++)
            if (fork() == 0) {
                double *own = make(n), s = 0;
                for (int k = 0; k < 4; k++)
                    for (int i = 0; i < n; i++) own[i] = a[i] + k;
                for (int i = 0; i < n; i++) s += own[i];
                _exit(s < 0);
            }
        while (wait(NULL) > 0) {}
#pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++) a[i] += 1;
    }
    return a[n / 2];
}

struct cell { struct cell *next; long value; char pad[48]; };

/* An interpreter's heap: arenas of 256 KiB come and go, and cells all over them are linked. Now and
 * then a library computes with threads. */
static double heap(void) {
    enum { ARENAS = 128, SIZE = 256 << 10 };
    struct cell *arena[ARENAS] = {0};
    double *work = make(N / 8), s = 0;
    unsigned seed = 1;
    for (int i = 0; i < N / 8; i++) work[i] = i;
    while (goes_on()) {
        for (int k = 0; k < 16; k++) {
            int which = (seed = seed * 1103515245 + 12345) >> 16 & (ARENAS - 1);
            if (arena[which]) munmap(arena[which], SIZE);
            arena[which] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (int c = 0; c < SIZE / (int)sizeof(struct cell); c++) {
                struct cell *other = arena[(which + c) & (ARENAS - 1)];
                arena[which][c] = (struct cell){other ? &other[c] : NULL, c, {0}};
            }
        }
        for (int a = 0; a < ARENAS; a++)
            for (int c = 0; arena[a] && c < SIZE / (int)sizeof(struct cell); c += 2) s += arena[a][c].value;
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N / 8; i++) work[i] += 1;
    }
    return s + work[5];
}

/* A file is mapped, privately and shared, and read by all threads; results are in memory. */
static double mapped(void) {
    FILE *f = tmpfile();
    size_t bytes = (size_t)N * 8;
    double *out = make(N), s = 0;
    if (!f || ftruncate(fileno(f), (off_t)bytes)) abort();
    double *in = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    double *again = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fileno(f), 0);
    for (int i = 0; i < N; i++) in[i] = i;
    while (goes_on()) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) out[i] = in[i] + again[N - 1 - i];
    }
    for (int i = 0; i < N; i += 4096) s += out[i];
    return s;
}

int main(int argc, char **argv) {
    static const struct { const char *name; double (*run)(void); } all[] = {
        {"parallel", parallel}, {"temporaries", temporaries}, {"regions", regions}, {"barriers", barriers},
        {"stealing", stealing}, {"forks", forks}, {"heap", heap}, {"mapped", mapped}, {"serial", serial},
    };
    if (argc != 3) return 2;
    end = omp_get_wtime() + atof(argv[2]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(argv[1], all[i].name)) {
            double s = all[i].run();
            fprintf(stderr, "%s: %d rounds, %g\n", argv[1], rounds, s);
            return 0;
        }
    return 2;
}
