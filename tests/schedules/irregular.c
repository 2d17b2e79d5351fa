/* irregular: four programs whose iterations take different times and touch memory irregularly, with
 * a schedule that the run-time chooses. For measurements of schedules in the simulator.
 *
 *   irregular pagerank|cg|pic|bfs SIZE ROUNDS
 *
 * pagerank  vertices pull from random neighbours; degrees follow a power law
 * cg        conjugate gradients on an unstructured matrix with 3 to 11 entries a row
 * bfs       breadth-first searches from ROUNDS sources: unvisited vertices ask their neighbours
 * pic       rows of cells with as many particles as a moving bump has there; fields of three rows
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t chance(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void *memory(size_t bytes)
{
    void *p;
    if (posix_memalign(&p, 4096, bytes))
        exit(1);
    return p;
}

static double pagerank(long n, int rounds)
{
    int64_t *begin = memory(sizeof *begin * (size_t)(n + 1));
    int32_t *degree = memory(sizeof *degree * (size_t)n);
    begin[0] = 0;
    for (long v = 0; v < n; v++) {
        double u = (double)(chance() % 1000003 + 1) / 1000003.0;
        degree[v] = 4 + (int32_t)fmin(6.0 / sqrt(u), 400.0);
        begin[v + 1] = begin[v] + degree[v];
    }
    int32_t *from = memory(sizeof *from * (size_t)begin[n]);
    double *rank = memory(sizeof *rank * (size_t)n), *next = memory(sizeof *next * (size_t)n);
    uint64_t seed = chance();
#pragma omp parallel for schedule(runtime)
    for (long v = 0; v < n; v++) {
        uint64_t x = seed + (uint64_t)v * 0x9e3779b97f4a7c15u;
        rank[v] = 1.0 / (double)n;
        next[v] = 0.0;
        for (int64_t e = begin[v]; e < begin[v + 1]; e++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            from[e] = (int32_t)((x >> 33) % (uint64_t)n);
        }
    }
    for (int r = 0; r < rounds; r++) {
#pragma omp parallel for schedule(runtime)
        for (long v = 0; v < n; v++) {
            double sum = 0.0;
            for (int64_t e = begin[v]; e < begin[v + 1]; e++)
                sum += rank[from[e]];
            next[v] = 0.15 / (double)n + 0.85 * sum / (double)degree[v];
        }
        double *t = rank;
        rank = next;
        next = t;
    }
    return rank[n / 2];
}

static double cg(long n, int rounds)
{
    int64_t *begin = memory(sizeof *begin * (size_t)(n + 1));
    begin[0] = 0;
    for (long i = 0; i < n; i++)
        begin[i + 1] = begin[i] + 3 + (int64_t)(chance() % 9);
    int32_t *column = memory(sizeof *column * (size_t)begin[n]);
    double *value = memory(sizeof *value * (size_t)begin[n]);
    double *x = memory(sizeof *x * (size_t)n), *r = memory(sizeof *r * (size_t)n);
    double *p = memory(sizeof *p * (size_t)n), *q = memory(sizeof *q * (size_t)n);
#pragma omp parallel for schedule(runtime)
    for (long i = 0; i < n; i++) {
        x[i] = 0.0;
        r[i] = p[i] = 1.0;
        q[i] = 0.0;
        for (int64_t e = begin[i]; e < begin[i + 1]; e++) {
            /* Neighbours of an unstructured mesh: near in number for the most part. */
            int64_t off = (int64_t)((uint64_t)(e * 2654435761u) % 601) - 300;
            column[e] = (int32_t)((i + off + n) % n);
            value[e] = e == begin[i] ? 20.0 : -1.0;
        }
        column[begin[i]] = (int32_t)i;
    }
    double square = (double)n;
    for (int k = 0; k < rounds; k++) {
        double curvature = 0.0, fresh = 0.0;
#pragma omp parallel for schedule(runtime) reduction(+ : curvature)
        for (long i = 0; i < n; i++) {
            double sum = 0.0;
            for (int64_t e = begin[i]; e < begin[i + 1]; e++)
                sum += value[e] * p[column[e]];
            q[i] = sum;
            curvature += p[i] * sum;
        }
        double alpha = square / curvature;
#pragma omp parallel for schedule(runtime) reduction(+ : fresh)
        for (long i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            fresh += r[i] * r[i];
        }
        double beta = fresh / square;
        square = fresh;
#pragma omp parallel for schedule(runtime)
        for (long i = 0; i < n; i++)
            p[i] = r[i] + beta * p[i];
    }
    return x[n / 2];
}

static double bfs(long n, int rounds)
{
    int64_t *begin = memory(sizeof *begin * (size_t)(n + 1));
    begin[0] = 0;
    for (long v = 0; v < n; v++) {
        double u = (double)(chance() % 1000003 + 1) / 1000003.0;
        begin[v + 1] = begin[v] + 4 + (int64_t)fmin(6.0 / sqrt(u), 400.0);
    }
    int32_t *from = memory(sizeof *from * (size_t)begin[n]), *parent = memory(sizeof *parent * (size_t)n);
    int8_t *front = memory((size_t)n), *next = memory((size_t)n);
    uint64_t seed = chance();
#pragma omp parallel for schedule(runtime)
    for (long v = 0; v < n; v++) {
        uint64_t x = seed + (uint64_t)v * 0x9e3779b97f4a7c15u;
        for (int64_t e = begin[v]; e < begin[v + 1]; e++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            from[e] = (int32_t)((x >> 33) % (uint64_t)n);
        }
        parent[v] = -1;
        front[v] = next[v] = 0;
    }
    double levels = 0.0;
    for (int r = 0; r < rounds; r++) {
        int32_t source = (int32_t)((uint64_t)r * 2654435761u % (uint64_t)n);
#pragma omp parallel for schedule(runtime)
        for (long v = 0; v < n; v++) {
            parent[v] = v == source ? source : -1;
            front[v] = v == source;
        }
        for (long found = 1; found > 0; levels += 1.0) {
            found = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : found)
            for (long v = 0; v < n; v++) {
                next[v] = 0;
                if (parent[v] >= 0)
                    continue;
                for (int64_t e = begin[v]; e < begin[v + 1]; e++)
                    if (front[from[e]]) {
                        parent[v] = from[e];
                        next[v] = 1;
                        found++;
                        break;
                    }
            }
            int8_t *t = front;
            front = next;
            next = t;
        }
    }
    return levels;
}

/* `m` rows of 256 cells; up to 1024 particles a row. */
enum { CELLS = 256, MOST = 1024 };

static double pic(long m, int rounds)
{
    float(*at)[MOST][4] = memory(sizeof *at * (size_t)m);
    double(*field)[CELLS] = memory(sizeof *field * (size_t)m);
    double(*charge)[CELLS] = memory(sizeof *charge * (size_t)m);
#pragma omp parallel for schedule(runtime)
    for (long j = 0; j < m; j++) {
        for (int i = 0; i < MOST; i++) {
            at[j][i][0] = (float)((i * 37 + j * 11) % CELLS);
            at[j][i][1] = at[j][i][2] = 0.0f;
            at[j][i][3] = 1.0f;
        }
        for (int c = 0; c < CELLS; c++)
            field[j][c] = charge[j][c] = 0.01 * (double)(c % 7);
    }
    for (int k = 0; k < rounds; k++) {
#pragma omp parallel for schedule(runtime)
        for (long j = 0; j < m; j++) {
            double far = fabs(remainder((double)j - (double)k * (double)m / 40.0, (double)m)) / (double)m;
            int count = 300 + (int)(700.0 * exp(-40.0 * far * far));
            long above = (j + m - 1) % m, below = (j + 1) % m;
            for (int i = 0; i < count; i++) {
                float *one = at[j][i];
                int c = (int)one[0] & (CELLS - 1);
                one[1] += (float)(field[j][c] + 0.5 * (field[above][c] + field[below][c]));
                one[0] += one[1] * 0.001f;
                charge[j][c] += one[3];
            }
        }
#pragma omp parallel for schedule(runtime)
        for (long j = 0; j < m; j++)
            for (int c = 0; c < CELLS; c++) {
                field[j][c] = 0.9 * field[j][c] + 1e-6 * charge[j][c];
                charge[j][c] = 0.0;
            }
    }
    return field[m / 2][1];
}

int main(int argc, char **argv)
{
    long n = argc > 2 ? atol(argv[2]) : 10000;
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    const char *what = argc > 1 ? argv[1] : "pagerank";
    double result = !strcmp(what, "cg") ? cg(n, rounds) : !strcmp(what, "pic") ? pic(n, rounds)
                  : !strcmp(what, "bfs") ? bfs(n, rounds) : pagerank(n, rounds);
    printf("%s %.9g\n", what, result);
    return 0;
}
