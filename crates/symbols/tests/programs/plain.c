// What C programs allocate and how. An expectation stands behind a slash and an @: length in bytes,
// name, type of an element, bytes of an element, dimensions, kind of variable.
// SPDX-License-Identifier: MIT OR Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef float real_t;
struct cell {
    double t;
    int kind;
    float v[5];
};
struct part {
    long id;
    double *x;
};
struct grid {
    int n;
    struct cell *cells;
    double **rows;
    struct part inner;
    struct grid *next;
};

static double *stat_u;
double *glob_u;
struct grid whole;
static double *level[4];
static size_t scale = 1000;
void *(*chosen)(size_t) = malloc;

#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")
#define NOINLINE __attribute__((noinline, noclone))

void *xmalloc(size_t n) {
    void *p = malloc(n);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", n);
        exit(1);
    }
    return p;
}

static inline void *small_wrapper(size_t n) {
    void *got = malloc(n);
    if (!got)
        abort();
    return got;
}

NOINLINE void *far_wrapper(size_t n) {
    return xmalloc(n + 8);
}

NOINLINE int by_address(double **out, size_t n) {
    // What goes out through an argument keeps the name that it has here.
    double *got = malloc(n * sizeof *got); //@ 240000 got double 8 [30000] local
    if (!got)
        return 1;
    *out = got;
    return 0;
}

NOINLINE void *aligned(size_t n) {
    void *p = NULL;
    if (posix_memalign(&p, 64, n))
        return NULL;
    return p;
}

NOINLINE void make(struct grid *g, size_t n) {
    g->n = (int)n;
    g->cells = malloc((scale * 8 + n) * sizeof *g->cells); //@ 256064 g->cells struct_cell 32 [8002] member
    g->rows = malloc((scale * 9 + n) * sizeof *g->rows); //@ 72016 g->rows double_* 8 [9002] member
    for (size_t i = 0; i < n; i++)
        g->rows[i] = malloc((scale * 10 + n) * sizeof **g->rows); //@ 80016 g->rows[] double 8 [10002] member
    g->inner.x = calloc(scale * 11 + n, sizeof(double)); //@ 88016 g->inner.x double 8 [11002] member
    g->next = malloc(scale * 12 * sizeof *g->next); //@ 576000 g->next struct_grid 48 [12000] member
    KEEP(g);
}

NOINLINE struct grid *grid_new(size_t n) {
    struct grid *g = malloc(n * sizeof *g); //@ 624000 fresh struct_grid 48 [13000] local
    g->cells = malloc(n * 3 * sizeof *g->cells); //@ 1248000 g->cells struct_cell 32 [39000] member
    return g;
}

NOINLINE void statics(size_t n) {
    stat_u = malloc((n + 14000) * 8); //@ 120000 stat_u double 8 [15000] static
    KEEP(stat_u);
    glob_u = calloc(n + 15000, 8); //@ 128000 glob_u double 8 [16000] global
    whole.cells = malloc((n + 16000) * sizeof(struct cell)); //@ 544000 whole.cells struct_cell 32 [17000] member
    level[2] = malloc((n + 17000) * 8); //@ 144000 level[] double 8 [18000] member
    KEEP(&level);
    for (int i = 0; i < 3; i++)
        level[i] = malloc((n + 18000) * 8); //@ 152000 level[] double 8 [19000] member
    KEEP(&stat_u);
    KEEP(&level);
    whole.inner.x = malloc((n + 19000) * 8); //@ 160000 whole.inner.x double 8 [20000] member
}

NOINLINE void shapes(size_t n, size_t m) {
    double(*fixed)[25][10] = malloc(n * sizeof *fixed); //@ 2000000 fixed double 8 [1000,25,10] local
    KEEP(fixed);
    double(*vla)[m] = malloc(n * sizeof *vla); //@ 104000 vla double 8 [?,?] local
    KEEP(vla);
    vla[1][2] = 3;
    real_t *reals = malloc(n * 99 * sizeof *reals); //@ 396000 reals real_t 4 [99000] local
    KEEP(reals);
    double *a = malloc(n * 168), *b = malloc(n * 176); //@ 168000 a double 8 [21000] local //@ 176000 b double 8 [22000] local
    KEEP(a);
    KEEP(b);
    void *anything = malloc(n * 67); //@ 67000 anything void ? [?] local
    KEEP(anything);
    unsigned char *bytes;
    bytes = malloc(n * 69); //@ 69000 bytes unsigned_char 1 [69000] local
    KEEP(bytes);
    const double *const fix = malloc(n * 184); //@ 184000 fix double 8 [23000] local
    KEEP(fix);
    bytes = realloc(bytes, n * 71); //@ 71000 bytes unsigned_char 1 [71000] local
    KEEP(bytes);
    struct grid here = {0};
    here.cells = malloc(n * 192); //@ 192000 here.cells struct_cell 32 [6000] member
    KEEP(&here);
    struct grid many[3];
    many[1].rows = malloc(n * 200); //@ 200000 many[].rows double_* 8 [25000] member
    KEEP(&many);
}

NOINLINE void wrappers(size_t n) {
    double *far = far_wrapper(n * 208 - 8); //@ 208000 far double 8 [26000] local
    KEEP(far);
    double *near = small_wrapper(n * 216); //@ 216000 near double 8 [27000] local
    KEEP(near);
    float *told = xmalloc(n * 224); //@ 224000 told float 4 [56000] local
    KEEP(told);
    glob_u = xmalloc(n * 232); //@ 232000 glob_u double 8 [29000] global
    double *out = NULL;
    if (by_address(&out, n * 30))
        return;
    KEEP(out);
    double *al = aligned(n * 248); //@ 248000 al double 8 [31000] local
    KEEP(al);
    double *posix;
    if (posix_memalign((void **)&posix, 64, n * 264)) //@ 264000 posix double 8 [33000] local
        return;
    KEEP(posix);
    double *c11 = aligned_alloc(64, n * 272); //@ 272000 c11 double 8 [34000] local
    KEEP(c11);
    double *pointed = chosen(n * 280); //@ 280000 pointed double 8 [35000] local
    KEEP(pointed);
    if (posix_memalign((void **)&whole.rows, 64, n * 288)) //@ 288000 whole.rows double_* 8 [36000] member
        return;
    double *checked;
    if ((checked = malloc(n * 296)) == NULL) { //@ 296000 checked double 8 [37000] local
        perror("malloc");
        return;
    }
    KEEP(checked);
}

NOINLINE double *filled(size_t n) {
    double *mine = malloc(n * 304); //@ 304000 answer double 8 [38000] local
    for (size_t i = 0; i < n; i++)
        mine[i] = (double)i;
    return mine;
}

NOINLINE void parameter(double *p, size_t n) {
    p = malloc(n * 312); //@ 312000 p double 8 [39000] parameter
    KEEP(p);
}

int main(int argc, char **argv) {
    (void)argv;
    size_t n = (size_t)argc * 1000;
    struct grid g = {0};
    make(&g, 2);
    struct grid *fresh = grid_new(n * 13);
    KEEP(fresh);
    statics(n);
    shapes(n, 13);
    wrappers(n);
    double *answer = filled(n);
    KEEP(answer);
    parameter(answer, n);
    return 0;
}
