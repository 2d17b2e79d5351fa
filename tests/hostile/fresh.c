/* Memory that is armed before anybody has touched it, and touched while it is being armed. */
#include "hostile.h"

int main(void) {
    double end = end_time();
    for (uint64_t round = 0; now() < end; round++) {
        size_t n = 69 * 4096;
        uint64_t *m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(m != MAP_FAILED, "mmap");
        usleep(round % 50 * 100);
        fill(m, n, round);
        usleep(1500);
        check(m, n, round, "fresh");
        must(!munmap(m, n), "munmap");
    }
    return done();
}
