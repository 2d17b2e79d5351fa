/* What the hostile programs share: large memory whose every word is known, and a clock.
 *
 * Each program does something that a run-time system which takes pages away from under it may get wrong, for a while, and
 * counts the bytes that are not what they should be. It prints "ok" and returns 0 only if there are none. It is right
 * without homenode, too.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
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

static inline int done(void) {
    if (!wrong_bytes) puts("ok");
    return wrong_bytes ? 1 : 0;
}

static inline int skipped(const char *why) {
    printf("skipped: %s\n", why);
    return 0;
}

#endif
