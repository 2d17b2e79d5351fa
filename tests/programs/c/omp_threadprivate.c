/* threadprivate with copyin, reductions of several kinds, lastprivate, user-defined reduction. */
#include <omp.h>
#include <stdio.h>

static int mine = 7;
#pragma omp threadprivate(mine)
static _Thread_local int tls = 3;

typedef struct { long sum, max; } acc;
static void merge(acc *o, const acc *i) {
    o->sum += i->sum;
    if (i->max > o->max) o->max = i->max;
}
#pragma omp declare reduction(merge : acc : merge(&omp_out, &omp_in)) initializer(omp_priv = {0, -1})

int main(void) {
    int total = 0, tls_total = 0, last = -1, and_ = -1, or_ = 0;
    long max = -1, product = 1;
    acc a = {0, -1};
    long array[8] = {0};
    mine = 11;
#pragma omp parallel copyin(mine) reduction(+ : total, tls_total)
    {
        mine += 2;
        tls += 1;
        total += mine;
        tls_total += tls;
    }
#pragma omp parallel for lastprivate(last) reduction(max : max) reduction(* : product) reduction(&& : and_) reduction(|| : or_)
    for (int i = 0; i < 200; i++) {
        last = i * 2;
        long v = (i * 37) % 101;
        if (v > max) max = v;
        if (i % 50 == 1) product *= 3;
        and_ = and_ && v >= 0;
        or_ = or_ || v == 100;
    }
#pragma omp parallel for reduction(merge : a)
    for (int i = 0; i < 500; i++) {
        a.sum += i;
        if (i % 333 > a.max) a.max = i % 333;
    }
#pragma omp parallel for reduction(+ : array)
    for (int i = 0; i < 800; i++) array[i % 8] += i;
    printf("%d %d %d %ld %ld %d %d %ld %ld %ld %ld\n", total, tls_total, last, max, product, and_, or_, a.sum, a.max, array[0],
           array[7]);
    return 0;
}
