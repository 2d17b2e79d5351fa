// explain: none warning=input-output
// Each round waits for its input, which comes slowly; the work on it takes little time.
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 19, ROUNDS = 8 };

int main(void) {
    FILE *input = popen("for round in 1 2 3 4 5 6 7 8; do sleep 0.4; echo $round; done", "r");
    double *a = malloc(sizeof(double) * COUNT);
    if (!a || !input) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < COUNT; i++) a[i] = i;
    for (int round = 0; round < ROUNDS; round++) {
        char line[16];
        const double by = fgets(line, sizeof line, input) ? atof(line) : 0;
#pragma omp parallel for schedule(static)
        for (long i = 0; i < COUNT; i++) a[i] = 0.5 * a[i] + by;
    }
    printf("%g\n", a[COUNT / 2]);
    return pclose(input) != 0;
}
