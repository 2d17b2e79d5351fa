/* Runs a program of the fuzzer (crates/agent/tests/programs/grammar.rs) and prints its digest.
 *
 * A program is a text: one operation a line, a name and up to four numbers. Most operations work on
 * a slot, which is a piece of memory of any kind. A block ends with the line "end". An operation on
 * an empty slot does nothing, so a program stays valid when lines are taken out of it.
 *
 * The digest depends on the program alone. Operations whose outcome depends on time or addresses
 * put only the fact into the digest that they worked.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "hostile.h"
#include <dlfcn.h>
#include <omp.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <threads.h>
#include <ucontext.h>

extern char **environ;

enum { SLOTS = 24, PARTS = 4, OPS = 4096, FIXED = 1 << 20 };

/* Kinds of memory. */
enum kind { EMPTY, MALLOC, CALLOC, ALIGNED, ANONYMOUS, POPULATED, FILE_PRIVATE, FILE_SHARED, SHARED, FIXED_ARRAY };

struct slot {
    unsigned char *p;
    size_t n;
    enum kind kind;
};

struct context {
    uint64_t digest;
};

typedef void run_op(struct context *c, const long *a, int at);

struct op {
    run_op *run;
    long a[4];
    int end; /* the line behind its block, or the next line */
};

static struct op ops[OPS];
static int n_ops;
static struct slot slots[SLOTS];
static unsigned char fixed[SLOTS][FIXED] __attribute__((aligned(4096)));
static struct context whole;

static void note(struct context *c, uint64_t x) {
    c->digest = (c->digest ^ x) * 0x9e3779b97f4a7c15u;
    c->digest ^= c->digest >> 29;
}

static void run_block(struct context *c, int from, int to) {
    while (from < to) {
        ops[from].run(c, ops[from].a, from);
        from = ops[from].end;
    }
}

static void run_inside(struct context *c, int at) { run_block(c, at + 1, ops[at].end - 1); }

/* The slot, or nothing if it is empty. */
static struct slot *slot(long at) {
    struct slot *s = &slots[(unsigned long)at % SLOTS];
    return s->kind == EMPTY ? NULL : s;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void fill_from(struct slot *s, size_t from, uint64_t salt) {
    for (size_t i = from / 8; i < s->n / 8; i++) ((uint64_t *)s->p)[i] = value(i, salt);
}
#include "interpreter/memory.h"
#include "interpreter/calls.h"
#include "interpreter/signals.h"
#include "interpreter/threads.h"
#include "interpreter/phases.h"
#include "interpreter/processes.h"

static void op_load(struct context *c, const long *a, int at) {
    (void)a;
    (void)at;
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*f)(double) = NULL;
    if (library) *(void **)&f = dlsym(library, "cbrt");
    note(c, f ? (uint64_t)f(27.0) : 99);
    if (library) dlclose(library);
}

/* closed: closes every descriptor that a program sees. Their number does not count: a descriptor of
 * homenode's may have a low number for a moment. */
static void op_closed(struct context *c, const long *a, int at) {
    (void)c;
    (void)a;
    (void)at;
    for (int fd = 3; fd < 256; fd++) close(fd);
}

/* drop: to another user, with no way back. */
static void op_drop(struct context *c, const long *a, int at) {
    (void)a;
    (void)at;
    if (geteuid() == 0) note(c, (uint64_t)(setgid(65534) | setuid(65534)));
    note(c, (uint64_t)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    note(c, geteuid());
}

static void say(const char *what, uint64_t digest) {
    char line[64];
    int n = snprintf(line, sizeof line, "%s %016llx\n", what, (unsigned long long)digest);
    must(write(1, line, (size_t)n) == n, "standard output");
}

static void at_exit(void) { say("exits", whole.digest); }

static void *ends_it(void *arg) { exit((int)(long)arg); }

/* end_by WAY CODE: how the process ends. */
static void op_end_by(struct context *c, const long *a, int at) {
    (void)at;
    int code = (int)(a[1] % 100);
    if (a[1] % 3 == 0) atexit(at_exit);
    say("digest", c->digest);
    pthread_t id;
    switch (a[0] % 12) {
    case 0: exit(code);
    case 1: _exit(code);
    case 2: quick_exit(code);
    case 3: abort();
    case 4: raise(SIGTERM); break;
    case 5: kill(getpid(), SIGKILL); break;
    case 6: pthread_exit(NULL);
    case 7: *(volatile char *)16 = 1; break;
    case 8:
        must(!pthread_create(&id, NULL, ends_it, (void *)(long)code), "pthread_create");
        pthread_join(id, NULL);
        break;
    case 9: execl("/bin/echo", "echo", "the last word", (char *)NULL); break;
    case 10: raise(SIGALRM); break;
    default: return;
    }
}

static void op_end(struct context *c, const long *a, int at) {
    (void)c;
    (void)a;
    (void)at;
}

static const struct {
    const char *name;
    run_op *run;
    int block;
} names[] = {
    {"alloc", op_alloc, 0},     {"free", op_free, 0},       {"grow", op_grow, 0},     {"move", op_move, 0},
    {"fill", op_fill, 0},       {"mix", op_mix, 0},         {"sum", op_sum, 0},       {"touch", op_touch, 0},
    {"copy", op_copy, 0},       {"sort", op_sort, 0},       {"text", op_text, 0},     {"dontneed", op_dontneed, 0},
    {"protect", op_protect, 0}, {"trap", op_trap, 0},       {"pipe", op_pipe, 0},     {"file", op_file, 0},
    {"vector", op_vector, 0},   {"message", op_message, 0}, {"stream", op_stream, 0}, {"ask", op_ask, 0},
    {"sleep", op_sleep, 0},     {"signal", op_signal, 0},   {"jump", op_jump, 0},     {"wait", op_wait, 0},
    {"notify", op_notify, 0},   {"team", op_team, 1},       {"part", op_part, 1},     {"meet", op_meet, 0},
    {"detach", op_detach, 0},   {"context", op_context, 0}, {"deep", op_deep, 0},     {"each", op_each, 0},
    {"reduce", op_reduce, 0},   {"tasks", op_tasks, 0},     {"stages", op_stages, 0}, {"loop", op_loop, 1},
    {"fork", op_fork, 1},       {"spawn", op_spawn, 0},     {"load", op_load, 0},     {"closed", op_closed, 0},
    {"drop", op_drop, 0},       {"end_by", op_end_by, 0},   {"end", op_end, 0},
};

static void read_program(const char *path) {
    FILE *f = fopen(path, "re");
    must(f != NULL, path);
    char line[256], name[32];
    int open[64], depth = 0;
    while (fgets(line, sizeof line, f)) {
        struct op *o = &ops[n_ops];
        if (sscanf(line, "%31s %ld %ld %ld %ld", name, &o->a[0], &o->a[1], &o->a[2], &o->a[3]) < 1 || name[0] == '#') continue;
        size_t i = 0;
        while (i < sizeof names / sizeof *names && strcmp(names[i].name, name)) i++;
        if (i == sizeof names / sizeof *names || n_ops == OPS - 1) fprintf(stderr, "bad line: %s", line), exit(2);
        o->run = names[i].run;
        o->end = ++n_ops;
        if (names[i].block) open[depth++] = n_ops - 1;
        if (o->run == op_end && depth) ops[open[--depth]].end = n_ops;
        if (depth == 64) fprintf(stderr, "too deep\n"), exit(2);
    }
    fclose(f);
    if (depth) fprintf(stderr, "a block does not end\n"), exit(2);
}

int main(int argc, char **argv) {
    if (argc != 2) fprintf(stderr, "usage: %s PROGRAM\n", argv[0]), exit(2);
    struct sigaction handled = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction opens = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    must(!sigaction(SIGUSR1, &handled, NULL) && !sigaction(SIGUSR2, &handled, NULL), "sigaction");
    must(!sigaction(SIGSEGV, &opens, NULL), "sigaction");
    read_program(argv[1]);
    whole.digest = 1;
    run_block(&whole, 0, n_ops);
    say("digest", whole.digest);
    return (int)(whole.digest % 100);
}
