/* What vectorisers and idiom recognisers like: loops that become memset and memcpy, shifted
 * (unaligned) vectors, strides, bytes, gathers, reductions. No line is touched in one build and not
 * in another. SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 50000

struct particle {
    double x, y, z;
    float mass;
    int32_t kind;
};

int main(void)
{
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *c = malloc(N * sizeof *c);
    float *f = malloc(N * sizeof *f);
    uint8_t *bytes = malloc(N);
    int32_t *index = malloc(N * sizeof *index);
    struct particle *p = malloc(N * sizeof *p);
    if (!a || !b || !c || !f || !bytes || !index || !p)
        return 1;
    for (int i = 0; i < N; i++)
        a[i] = 0.0;
    for (int i = 0; i < N; i++)
        bytes[i] = 0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++) {
        b[i] = i * 0.5;
        f[i] = (float)i;
        index[i] = (int32_t)(((int64_t)i * 7919) % N);
        p[i] = (struct particle){i, -i, 0.0, 1.0f, i & 3};
    }
    for (int round = 0; round < 3; round++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++)
            c[i] = b[i];
#pragma omp parallel for schedule(static)
        for (int i = 1; i < N - 1; i++)
            a[i] = 0.25 * (c[i - 1] + 2.0 * c[i] + c[i + 1]);
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N / 2; i++)
            f[2 * i] += f[2 * i + 1];
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++)
            b[i] += a[index[i]];
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) {
            p[i].x += 0.1 * p[i].y;
            p[i].kind ^= 1;
        }
        for (int i = 0; i < N; i++)
            bytes[i] = (uint8_t)(bytes[i] + (uint8_t)i);
    }
    double sum = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += b[i] + f[i] + bytes[i] + p[i].x;
    printf("%.3e\n", sum);
    free(a), free(b), free(c), free(f), free(bytes), free(index), free(p);
    return 0;
}
