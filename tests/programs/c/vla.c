/* Variable-length arrays, alloca, deep recursion, variadic functions, bit-fields, unaligned and odd
 * types. */
#include <alloca.h>
#include <complex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct bits { unsigned a : 3, b : 20, c : 9; long d : 40; };
struct __attribute__((packed)) packed { char c; long l; short s; double d; };

static long vla(int n) {
    long a[n][n], s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) a[i][j] = i * j;
    for (int i = 0; i < n; i++) s += a[n - 1 - i][i];
    return s;
}
static int recurse(int n) {
    char *p = alloca(64 + n % 32);
    memset(p, n, 64);
    return n == 0 ? 0 : (p[63] == (char)n) + recurse(n - 1);
}
static long sum(int n, ...) {
    va_list ap;
    long s = 0;
    va_start(ap, n);
    for (int i = 0; i < n; i++) s += va_arg(ap, long);
    va_end(ap);
    return s;
}

int main(void) {
    static struct bits b[10];
    static struct packed p[7];
    static long double ld[20];
    static double complex z[20];
    static __int128 w[20];
    for (int i = 0; i < 10; i++) b[i].a = i, b[i].b = i * 1000, b[i].d = -i;
    for (int i = 0; i < 7; i++) p[i].l = i * 77, p[i].d = i / 2.0, p[i].s = i;
    for (int i = 0; i < 20; i++) ld[i] = i / 4.0L, z[i] = i + 2.0 * i * I, w[i] = ((__int128)i << 70) + i;
    long t = 0;
    double d = 0;
    for (int i = 0; i < 10; i++) t += b[i].a + b[i].b + b[i].d;
    for (int i = 0; i < 7; i++) t += p[i].l + p[i].s, d += p[i].d;
    for (int i = 0; i < 20; i++) d += (double)ld[i] + creal(z[i] * z[i]), t += (long)(w[i] >> 70);
    printf("%ld %d %ld %ld %g\n", vla(40), recurse(5000), sum(4, 1L, 2L, 3L, 4L), t, d);
    return 0;
}
