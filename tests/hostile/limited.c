/* How much of a limited address space there is for the program. */
#include "hostile.h"
#include <sys/resource.h>

int main(void) {
    struct rlimit limit;
    must(!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY, "a limit");
    size_t got = 0;
    for (char *p; (p = malloc(64 * MiB)); got += 64 * MiB) {
        *p = 1;
        usleep(2000);
    }
    if (got < limit.rlim_cur / 8 * 7) fprintf(stderr, "%zu of %zu bytes\n", got, (size_t)limit.rlim_cur), wrong_bytes++;
    return done();
}
