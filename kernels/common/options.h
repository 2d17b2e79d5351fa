/* What a kernel can be told on its command line, the same words for all of them.
 *
 * A kernel describes itself with a `struct kernel_about`; `kernel_parse` turns the arguments into
 * `struct kernel_options`, or prints a sentence and says with which status to leave.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_OPTIONS_H
#define KERNEL_OPTIONS_H

#include <stdint.h>

#define KERNEL_CLASSES 4 /* S, W, A, B */

/* `kernel_parse` returns this when the program shall run; every other value is its exit status. */
#define KERNEL_RUN (-1)

enum kernel_schedule { SCHEDULE_BLOCK = 0, SCHEDULE_CYCLIC = 1, SCHEDULE_AFFINITY = 2 };

/* Where the blocks of a matrix lie. */
enum kernel_layout { LAYOUT_CONTIGUOUS = 0, LAYOUT_ROWS = 1 };

/* Options that only some kernels know. */
enum kernel_extra {
    EXTRA_SCHEDULE = 1,
    EXTRA_PADDED = 2,
    EXTRA_LAYOUT = 4,
    EXTRA_ORDER = 8,   /* --verify order */
    EXTRA_MATRIX = 16, /* --matrix FILE, --save FILE */
    EXTRA_PAIRS = 32,  /* --pairs T:M,..., see pairs.h */
    EXTRA_COLUMNS = 64, /* --columns N */
    EXTRA_SINGLE = 128, /* --single */
    EXTRA_NPB = 256,    /* --init npb */
};

struct kernel_class {
    char letter;
    int64_t size;
    int32_t iterations; /* 0: the size gives them, see `rows_a_round` */
};

struct kernel_about {
    const char *name;
    const char *summary;      /* one line */
    const char *size_meaning; /* what N is */
    const char *classes_from; /* who defined the classes */
    const char *padded_meaning;
    const char *example;
    struct kernel_class classes[KERNEL_CLASSES];
    char default_class;
    int64_t least_size, most_size;
    int power_of_two;      /* the size must be one */
    int multiple_of;       /* the size must be one of this; 0: any */
    const char *multiple_because;
    int rows_a_round;      /* elimination: rows a round until one is left, and more rounds make no sense; or 0 */
    int extras;            /* of enum kernel_extra */
    /* Bytes that the program allocates for a size (and the class's letter, 0 for a size by number):
     * more than there is must be refused before anything is allocated. Null: not told. */
    double (*bytes)(int64_t size, int letter);
};

/* Only 32- and 64-bit integers, because the Fortran module mirrors it. */
struct kernel_options {
    int64_t size;
    int32_t iterations;
    int32_t standard_iterations; /* 1: what the class (or the nearest class below the size) has */
    int32_t class_letter;        /* 0: the size was given by number */
    int32_t threads;
    int32_t serial_init;
    int32_t next_touch;
    int32_t json;
    int32_t padded;
    int32_t schedule;
    int32_t round_robin; /* pages dealt over the threads; serial_init is 0 then */
    int32_t layout; /* of enum kernel_layout */
    int32_t single; /* numbers of 4 bytes instead of 8 */
    int32_t npb_init; /* as the OpenMP version of NPB 3.0 initialises; serial_init is 0 then */
};

int kernel_parse(const struct kernel_about *about, int argc, char **argv, struct kernel_options *options);

/* Prints the sentence, as for a mistyped option, and gives the exit status: for rules that only one
 * program has. */
__attribute__((format(printf, 2, 3))) int kernel_refuse(const struct kernel_about *about, const char *format, ...);

/* For programs whose `main` is not C: `count` arguments without the program's name, each ended by a
 * NUL, in one row. */
int kernel_parse_packed(const struct kernel_about *about, int count, const char *packed,
                        struct kernel_options *options);

/* The class whose parameters fit `size` best: the largest that is not larger, or the smallest. */
const struct kernel_class *kernel_class_below(const struct kernel_about *about, int64_t size);

/* The value of an option that only some kernels know (--verify, --matrix, --save, --pairs,
 * --columns), or null when it was not given. */
const char *kernel_text_option(const char *option);

/* What --init was: serial, parallel, round-robin or npb. */
const char *kernel_init_name(const struct kernel_options *options);

#endif
