/* What the hostile programs share: large memory whose every word is known, and a clock.
 *
 * Each program does something that a run-time system which takes pages away from under it may get
 * wrong, for a while, and counts the bytes that are not what they should be. It prints "ok" and
 * returns 0 only if there are none. It is right without homenode, too.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MiB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

static long wrong_bytes;

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How long to go on, in seconds: HOSTILE_SECONDS, or a moment. */
static inline double end_time(void) {
    const char *s = getenv("HOSTILE_SECONDS");
    return now() + (s ? atof(s) : 0.4);
}

static inline uint64_t value(size_t i, uint64_t salt) { return (i + salt) * 0x9e3779b97f4a7c15u; }

static inline void fill(uint64_t *p, size_t bytes, uint64_t salt) {
    for (size_t i = 0; i < bytes / 8; i++) p[i] = value(i, salt);
}

/* Counts wrong bytes. */
static inline void check(const uint64_t *p, size_t bytes, uint64_t salt, const char *what) {
    long wrong = 0;
    for (size_t i = 0; i < bytes / 8; i++) wrong += p[i] == value(i, salt) ? 0 : 8;
    if (wrong) fprintf(stderr, "%s: %ld wrong bytes\n", what, wrong);
    wrong_bytes += wrong;
}

static inline void must(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

/* Pages of this memory, all of which was written, that are not there now: homenode has taken them
 * away. */
static inline size_t away(const void *p, size_t bytes) {
    size_t n = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    must(fd >= 0, "pagemap");
    for (uintptr_t page = (uintptr_t)p / PAGE + 1; page < ((uintptr_t)p + bytes) / PAGE; page++) {
        uint64_t entry = 0;
        must(pread(fd, &entry, sizeof entry, (off_t)(page * sizeof entry)) == (ssize_t)sizeof entry, "pagemap");
        /* Neither in memory nor swapped out. */
        n += entry >> 62 == 0;
    }
    close(fd);
    return n;
}

/* Waits until some of it was taken away. Without homenode nobody would. */
static inline void wait_until_armed(const void *p, size_t bytes, const char *what) {
    if (!getenv("HOMENODE_RUN_DIR")) return;
    double end = now() + 30;
    while (!away(p, bytes)) {
        if (now() > end) fprintf(stderr, "never armed: %s\n", what), exit(1);
        usleep(200);
    }
}

static inline int done(void) {
    if (!wrong_bytes) puts("ok");
    return wrong_bytes ? 1 : 0;
}

static inline int skipped(const char *why) {
    printf("skipped: %s\n", why);
    return 0;
}

#endif
