/* tasks: recursive, with dependences, taskgroup, taskloop, firstprivate, undeferred, final. */
#include <stdio.h>

static long fib(int n) {
    if (n < 2) return n;
    long a, b;
#pragma omp task shared(a) if (n > 8)
    a = fib(n - 1);
#pragma omp task shared(b) final(n < 6)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void) {
    long f = 0, chain = 1, group = 0, loop = 0, cells[64];
#pragma omp parallel
#pragma omp single
    {
        f = fib(16);
#pragma omp task depend(out : chain)
        chain = chain * 3 + 1;
#pragma omp task depend(inout : chain)
        chain = chain * 5 + 2;
#pragma omp task depend(in : chain)
        cells[0] = chain;
#pragma omp taskwait
#pragma omp taskgroup
        {
            for (int i = 1; i < 64; i++) {
#pragma omp task firstprivate(i) shared(cells)
                cells[i] = i * i;
            }
        }
        for (int i = 0; i < 64; i++) group += cells[i];
#pragma omp taskloop grainsize(7) shared(cells)
        for (int i = 0; i < 64; i++) cells[i] += i;
        for (int i = 0; i < 64; i++) loop += cells[i];
    }
    printf("fib %ld chain %ld group %ld loop %ld\n", f, chain, group, loop);
    return 0;
}
