/* Command line of the kernels. Nothing is run and the status is 2 when a word makes no sense: a
 * mistyped option must not become a measurement.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "options.h"

#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE 2
#define MOST_THREADS 4096
#define MOST_ITERATIONS 1000000

/* Options whose value is a text. A program parses its command line once, so one static record will
 * do. */
static struct {
    const char *name, *value;
    int extra;
} texts[] = {{"--verify", NULL, EXTRA_ORDER}, {"--matrix", NULL, EXTRA_MATRIX}, {"--save", NULL, EXTRA_MATRIX},
           {"--pairs", NULL, EXTRA_PAIRS}, {"--columns", NULL, EXTRA_COLUMNS}};

#define TEXTS ((int)(sizeof texts / sizeof *texts))

struct parser {
    const struct kernel_about *about;
    struct kernel_options *options;
    int size_given, iterations_given;
};

int kernel_refuse(const struct kernel_about *about, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: ", about->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; nothing was run (see %s --help)\n", about->name);
    return USAGE;
}

static void print_classes(const struct kernel_about *about)
{
    printf("  --class S|W|A|B       %s:", about->classes_from);
    for (int i = 0; i < KERNEL_CLASSES; i++) {
        const struct kernel_class *c = &about->classes[i];
        printf("%s %c = %" PRId64, i ? "," : "", c->letter, c->size);
        if (c->iterations)
            printf(" (%" PRId32 " iterations)", c->iterations);
    }
    printf(" [%c]\n", about->default_class);
}

static int help(const struct kernel_about *about)
{
    printf("%s: %s\n\nusage: %s [options]\n\n", about->name, about->summary, about->name);
    print_classes(about);
    printf("  --size N              %s, instead of a class\n", about->size_meaning);
    printf("  --threads N           OpenMP threads [OMP_NUM_THREADS or all CPUs]\n");
    printf("  --iterations N        rounds of the timed outer loop [the class's]\n");
    printf("  --init serial|parallel|round-robin  who touches the main arrays first: the initial thread alone, each\n"
           "                        thread its share of the main loops, or all threads in turns, a page each\n"
           "                        [parallel]\n");
    if (about->extras & EXTRA_NPB)
        printf("  --init npb            as the OpenMP version of the NAS Parallel Benchmarks 3.0 does\n");
    printf("  --next-touch          ask homenode, in iteration 0, to move each page to who touches it next\n");
    if (about->extras & EXTRA_SCHEDULE)
        printf("  --schedule block|cyclic|affinity  which thread updates which column [block]\n");
    if (about->extras & EXTRA_LAYOUT)
        printf("  --layout contiguous|rows  each block in one piece beside its owner's others, or all in rows\n"
               "                        [contiguous]\n");
    if (about->extras & EXTRA_PADDED)
        printf("  --padded              %s\n", about->padded_meaning);
    if (about->extras & EXTRA_SINGLE)
        printf("  --single              numbers of 4 bytes instead of 8\n");
    if (about->extras & EXTRA_ORDER)
        printf("  --verify order        instead of the timed rounds: solve on finer and finer grids up to the size and check\n"
               "                        the order of accuracy\n");
    if (about->extras & EXTRA_MATRIX)
        printf("  --matrix FILE         read the system from a file that --save wrote; it gives the size\n"
               "  --save FILE           keep the file of the matrix there [a temporary file]\n");
    if (about->extras & EXTRA_COLUMNS)
        printf("  --columns N           points a row, where the plate is no square: --size counts the rows then\n");
    if (about->extras & EXTRA_PAIRS)
        printf("  --pairs T:M,...       thread i on node T of pair i, its rows on node M [the system's own placement]\n");
    printf("  --json                print one JSON object instead of the table\n");
    printf("  --help                this text\n");
    printf("\nexit status: 0 verified or not checked, 1 wrong result, 2 bad usage or too little memory\n");
    printf("\nexample:\n  %s\n", about->example);
    return 0;
}

/* A whole decimal number in [least, most], or -1. */
static int64_t number(const char *text, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        return -1;
    return value;
}

static int set_class(struct parser *p, const char *text)
{
    for (int i = 0; i < KERNEL_CLASSES; i++)
        if (text[0] == p->about->classes[i].letter && !text[1]) {
            p->options->class_letter = text[0];
            return KERNEL_RUN;
        }
    return kernel_refuse(p->about, "--class %s: the classes are S, W, A and B", text);
}

static int set_size(struct parser *p, const char *text)
{
    const struct kernel_about *about = p->about;
    int64_t n = number(text, about->least_size, about->most_size);
    if (n < 0)
        return kernel_refuse(about, "--size %s: not a whole number from %" PRId64 " to %" PRId64, text,
                             about->least_size, about->most_size);
    if (about->power_of_two && (n & (n - 1)))
        return kernel_refuse(about, "--size %s: not a power of two", text);
    if (about->multiple_of && n % about->multiple_of)
        return kernel_refuse(about, "--size %s: not a multiple of %d, which %s", text, about->multiple_of,
                      about->multiple_because);
    p->options->size = n;
    p->size_given = 1;
    return KERNEL_RUN;
}

static int set_count(struct parser *p, const char *option, const char *text, int64_t most, int32_t *out)
{
    int64_t n = number(text, 1, most);
    if (n < 0)
        return kernel_refuse(p->about, "%s %s: not a whole number from 1 to %" PRId64, option, text, most);
    *out = (int32_t)n;
    return KERNEL_RUN;
}

static int set_init(struct parser *p, const char *text)
{
    p->options->serial_init = !strcmp(text, "serial");
    p->options->round_robin = !strcmp(text, "round-robin");
    p->options->npb_init = (p->about->extras & EXTRA_NPB) && !strcmp(text, "npb");
    if (!p->options->serial_init && !p->options->round_robin && !p->options->npb_init && strcmp(text, "parallel"))
        return kernel_refuse(p->about, "--init %s: it is serial, parallel%s", text,
                             p->about->extras & EXTRA_NPB ? ", round-robin or npb" : " or round-robin");
    return KERNEL_RUN;
}

static int set_schedule(struct parser *p, const char *text)
{
    static const char *const names[] = {"block", "cyclic", "affinity"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, names[i])) {
            p->options->schedule = i;
            return KERNEL_RUN;
        }
    return kernel_refuse(p->about, "--schedule %s: it is block, cyclic or affinity", text);
}

static int set_layout(struct parser *p, const char *text)
{
    if (strcmp(text, "contiguous") && strcmp(text, "rows"))
        return kernel_refuse(p->about, "--layout %s: it is contiguous or rows", text);
    p->options->layout = strcmp(text, "rows") ? LAYOUT_CONTIGUOUS : LAYOUT_ROWS;
    return KERNEL_RUN;
}

static int text_index(const struct kernel_about *about, const char *option)
{
    for (int i = 0; i < TEXTS; i++)
        if ((about->extras & texts[i].extra) && !strcmp(option, texts[i].name))
            return i;
    return -1;
}

const char *kernel_text_option(const char *option)
{
    for (int i = 0; i < TEXTS; i++)
        if (!strcmp(option, texts[i].name))
            return texts[i].value;
    return NULL;
}

static int set_text(struct parser *p, int index, const char *value)
{
    if (texts[index].extra == EXTRA_ORDER && strcmp(value, "order"))
        return kernel_refuse(p->about, "--verify %s: it is order", value);
    if (!*value)
        return kernel_refuse(p->about,
                             texts[index].extra == EXTRA_PAIRS     ? "%s needs pairs of nodes"
                             : texts[index].extra == EXTRA_COLUMNS ? "%s needs a number"
                                                                   : "%s needs the name of a file",
                             texts[index].name);
    texts[index].value = value;
    return KERNEL_RUN;
}

static int set_value(struct parser *p, const char *option, const char *value)
{
    int text = text_index(p->about, option);
    if (text >= 0)
        return set_text(p, text, value);
    if (!strcmp(option, "--class"))
        return set_class(p, value);
    if (!strcmp(option, "--size"))
        return set_size(p, value);
    if (!strcmp(option, "--threads"))
        return set_count(p, option, value, MOST_THREADS, &p->options->threads);
    if (!strcmp(option, "--iterations")) {
        p->iterations_given = 1;
        return set_count(p, option, value, MOST_ITERATIONS, &p->options->iterations);
    }
    if (!strcmp(option, "--init"))
        return set_init(p, value);
    if (!strcmp(option, "--layout"))
        return set_layout(p, value);
    return set_schedule(p, value);
}

static int takes_value(const struct kernel_about *about, const char *option)
{
    static const char *const common[] = {"--class", "--size", "--threads", "--iterations", "--init"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (!strcmp(option, common[i]))
            return 1;
    return text_index(about, option) >= 0 ||
           ((about->extras & EXTRA_SCHEDULE) && !strcmp(option, "--schedule")) ||
           ((about->extras & EXTRA_LAYOUT) && !strcmp(option, "--layout"));
}

static int set_flag(struct parser *p, const char *option)
{
    if (!strcmp(option, "--next-touch"))
        p->options->next_touch = 1;
    else if (!strcmp(option, "--json"))
        p->options->json = 1;
    else if ((p->about->extras & EXTRA_PADDED) && !strcmp(option, "--padded"))
        p->options->padded = 1;
    else if ((p->about->extras & EXTRA_SINGLE) && !strcmp(option, "--single"))
        p->options->single = 1;
    else
        return kernel_refuse(p->about, "there is no option '%s'", option);
    return KERNEL_RUN;
}

static const struct kernel_class *class_of_letter(const struct kernel_about *about, int letter)
{
    for (int i = 0; i < KERNEL_CLASSES; i++)
        if (about->classes[i].letter == letter)
            return &about->classes[i];
    return &about->classes[0];
}

const struct kernel_class *kernel_class_below(const struct kernel_about *about, int64_t size)
{
    const struct kernel_class *best = &about->classes[0];
    for (int i = 1; i < KERNEL_CLASSES; i++)
        if (about->classes[i].size <= size)
            best = &about->classes[i];
    return best;
}

/* The team must have as many threads as the report says: no fewer because of the machine's load or
 * a limit. */
static int set_threads(struct parser *p)
{
    struct kernel_options *o = p->options;
    if (!o->threads)
        o->threads = omp_get_max_threads();
    if (o->threads > omp_get_thread_limit())
        return kernel_refuse(p->about, "%" PRId32 " threads: OMP_THREAD_LIMIT allows %d", o->threads,
                             omp_get_thread_limit());
    omp_set_dynamic(0);
    omp_set_num_threads(o->threads);
    return KERNEL_RUN;
}

/* Before anything is allocated: a system that is out of memory kills the program without a word. */
static int check_memory(const struct parser *p)
{
    const double gigabyte = 1e9;
    const struct kernel_options *o = p->options;
    double wanted = p->about->bytes ? p->about->bytes(o->size, o->class_letter) : 0.0;
    double there = kernel_available_bytes();
    if (wanted <= there)
        return KERNEL_RUN;
    return kernel_refuse(p->about,
                         "size %" PRId64 " takes %.1f GB of memory, of which %.1f GB are available: try a smaller size",
                         o->size, wanted / gigabyte, there / gigabyte);
}

/* Only a letter names a class, even where the size is equal: MG has 256 in both A and B. */
static int fill_in(struct parser *p)
{
    const struct kernel_about *about = p->about;
    struct kernel_options *o = p->options;
    if (p->size_given && o->class_letter)
        return kernel_refuse(about, "--class and --size both give the size: use one");
    if (!p->size_given && !o->class_letter)
        o->class_letter = about->default_class;
    const struct kernel_class *c =
        o->class_letter ? class_of_letter(about, o->class_letter) : kernel_class_below(about, o->size);
    if (o->class_letter)
        o->size = c->size;
    int32_t rows = about->rows_a_round;
    int32_t standard = rows ? ((int32_t)o->size - 1 + rows - 1) / rows : c->iterations;
    if (!p->iterations_given)
        o->iterations = standard;
    if (rows && o->iterations > standard)
        return kernel_refuse(about, "--iterations %" PRId32 ": a matrix of this size has %" PRId32 " elimination steps",
                             o->iterations, standard);
    o->standard_iterations = o->iterations == standard;
    int status = check_memory(p);
    return status == KERNEL_RUN ? set_threads(p) : status;
}

/* One option, with its value after '=' or in `next` (null at the end). Sets *used_next when it took
 * that. */
static int parse_one(struct parser *p, const char *word, const char *next, int *used_next)
{
    char option[32];
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    if (strncmp(word, "--", 2) || length >= sizeof option)
        return kernel_refuse(p->about, "'%s' is not an option", word);
    memcpy(option, word, length);
    option[length] = '\0';
    if (!takes_value(p->about, option))
        return equals ? kernel_refuse(p->about, "'%s' is not an option with a value", word) : set_flag(p, option);
    *used_next = !equals;
    const char *value = equals ? equals + 1 : next;
    return value ? set_value(p, option, value) : kernel_refuse(p->about, "%s needs a value", option);
}

int kernel_parse(const struct kernel_about *about, int argc, char **argv, struct kernel_options *options)
{
    struct parser p = {.about = about, .options = options};
    memset(options, 0, sizeof *options);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help"))
            return help(about);
        int used_next = 0;
        int status = parse_one(&p, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used_next);
        if (status != KERNEL_RUN)
            return status;
        i += used_next;
    }
    return fill_in(&p);
}

const char *kernel_init_name(const struct kernel_options *options)
{
    return options->serial_init ? "serial" : options->round_robin ? "round-robin" : options->npb_init ? "npb" : "parallel";
}

int kernel_parse_packed(const struct kernel_about *about, int count, const char *packed,
                        struct kernel_options *options)
{
    char **argv = malloc(((size_t)count + 1) * sizeof *argv);
    if (!argv)
        return kernel_refuse(about, "no memory for the arguments");
    argv[0] = (char *)(uintptr_t)about->name;
    for (int i = 1; i <= count; i++) {
        argv[i] = (char *)(uintptr_t)packed;
        packed += strlen(packed) + 1;
    }
    int status = kernel_parse(about, count + 1, argv, options);
    free(argv);
    return status;
}
