/* sweeps: one thread initialises an array, then a team sweeps over it. For the cost of moves.
 *
 *   sweeps MIB ROUNDS
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return fputs("usage: sweeps MIB ROUNDS\n", stderr), 2;
    long n = atol(argv[1]) << 17, rounds = atol(argv[2]);
    double *a = malloc((size_t)n * sizeof *a), s = 0;
    if (!a)
        return 1;
    for (long i = 0; i < n; i++)
        a[i] = (double)i;
    for (long r = 0; r < rounds; r++) {
#pragma omp parallel for schedule(static) reduction(+ : s)
        for (long i = 0; i < n; i += 8) {
            a[i] = a[i] * 0.5 + (double)i;
            s += a[i];
        }
    }
    printf("%.17g\n", s);
    return 0;
}
