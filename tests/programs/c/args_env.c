/* Constructors, destructors, weak symbols, function pointers, argv, environ, return from main by
 * status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;
static int order[8], n;
static int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((constructor(150))) static void early(void) { order[n++] = 1; char *p = malloc(10); p[0] = 1; free(p); }
__attribute__((constructor)) static void late(void) { order[n++] = 2; }
__attribute__((destructor)) static void end(void) { printf("destructor %d\n", n); }
__attribute__((weak)) int absent(void);

int main(int argc, char **argv) {
    int v[1000];
    for (int i = 0; i < 1000; i++) v[i] = (i * 7919) % 1009;
    qsort(v, 1000, sizeof *v, cmp);
    int key = v[500], *found = bsearch(&key, v, 1000, sizeof *v, cmp), sorted = 1;
    for (int i = 1; i < 1000; i++) sorted &= v[i - 1] <= v[i];
    printf("%d %d %d %d %d %d\n", argc, argv[argc] == NULL, order[0], order[1], absent == NULL, environ != NULL);
    printf("%d %d %s\n", sorted, found && *found == key, getenv("NO_SUCH_VARIABLE_HERE") ? "set" : "unset");
    return 113;
}
