/* Coroutines on stacks from malloc. The C library's functions switch to them, or, unseen, the
 * program's own instructions. They use their stacks deeply, and handle SIGSEGV on them. sigaltstack
 * must tell the program what the program has set. */
#include "hostile.h"
#include <setjmp.h>
#include <signal.h>
#include <threads.h>
#include <ucontext.h>

#define COROUTINES 8
#define STACK ((size_t)256 << 10)

/* Contexts lie in large memory, too, each in pages of its own. */
struct routine {
    ucontext_t context;
    void *pointer;
    char *stack;
    uint64_t salt, turns;
    char space[2 * 4096];
};
struct set {
    ucontext_t home;
    void *pointer;
    char space[4096];
    struct routine of[COROUTINES];
};

static __thread struct set *set;
static __thread int current, wanted, caught;
static __thread sigjmp_buf back;
static volatile char *nothing;

/* Frames whose words are known on the way down and on the way up. */
static __attribute__((noinline)) void deep(int depth, uint64_t salt) {
    volatile uint64_t words[384];
    for (size_t i = 0; i < 384; i++) words[i] = value(i, salt + (uint64_t)depth);
    if (depth) deep(depth - 1, salt);
    for (size_t i = 0; i < 384; i++)
        if (words[i] != value(i, salt + (uint64_t)depth)) __atomic_fetch_add(&wrong_bytes, 8, __ATOMIC_RELAXED);
}

static void on_segv(int s, siginfo_t *info, void *context) {
    /* Without SA_ONSTACK: on the stack that was interrupted, with the registers of what was. */
    ucontext_t *c = context;
    char here, *stack = set->of[current].stack;
    must(s == SIGSEGV && info->si_addr == nothing, "signal's number and address");
    must(&here > stack && &here < stack + STACK, "handler on the interrupted stack");
    uintptr_t pointer = (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
    must(pointer > (uintptr_t)&here && pointer < (uintptr_t)stack + STACK, "interrupted stack");
    deep(20, 77);
    caught++;
    if (wanted) siglongjmp(back, 1);
    /* The other way out: past the load of two bytes that failed. */
    c->uc_mcontext.gregs[REG_RIP] += 2;
}

/* Own faults, left by a jump and by return. The vector registers are as they were. */
static void fault(void) {
    int had = caught;
    wanted = 1;
    if (!sigsetjmp(back, 1)) (void)*nothing;
    must(caught == had + 1, "own SIGSEGV");
    wanted = 0;
    double kept = (double)had + 0.5, seen = kept;
    __asm__ volatile("movb (%%rax), %%al" : "+x"(seen) : "a"(nothing) : "memory");
    must(caught == had + 2 && seen == kept, "own SIGSEGV that returns");
}

/* Saves the stack pointer at `from` and goes on at `to`. */
void hop(void **from, void *to);
__asm__("hop:\n"
        "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n");

static int unseen(int routine) { return routine % 2; }

static void run(void) {
    for (;;) {
        struct routine *me = &set->of[current];
        deep((int)(me->turns % 60), me->salt);
        if (me->turns % 8 == 3) fault();
        me->turns++;
        if (unseen(current)) hop(&me->pointer, set->pointer);
        else must(!swapcontext(&me->context, &set->home), "swapcontext");
    }
}

static void told_of_none(void) {
    stack_t told = {.ss_sp = &told, .ss_size = 1};
    must(!sigaltstack(NULL, &told) && told.ss_flags == SS_DISABLE && !told.ss_sp && !told.ss_size, "no alternate stack");
}

static void own_stack(void) {
    static __thread char own[64 << 10];
    stack_t mine = {.ss_sp = own, .ss_size = sizeof own}, told;
    must(!sigaltstack(&mine, &told) && told.ss_flags == SS_DISABLE, "own alternate stack");
    must(!sigaltstack(NULL, &told) && told.ss_sp == own && told.ss_size == sizeof own && !told.ss_flags, "own is told");
    stack_t off = {.ss_flags = SS_DISABLE};
    must(!sigaltstack(&off, &told) && told.ss_sp == own, "own alternate stack given up");
    told_of_none();
}

static void *work(void *arg) {
    uint64_t *p = malloc(4 * MiB);
    fill(p, 4 * MiB, (uintptr_t)arg);
    told_of_none();
    set = calloc(1, sizeof *set);
    for (int i = 0; i < COROUTINES; i++) {
        struct routine *r = &set->of[i];
        r->stack = malloc(STACK);
        r->salt = (uint64_t)i * 1000;
        if (unseen(i)) {
            /* Six registers, and where to begin. */
            void **top = (void **)(((uintptr_t)r->stack + STACK) & ~(uintptr_t)15) - 8;
            memset(top, 0, 8 * sizeof *top);
            top[6] = (void *)run;
            r->pointer = top;
            continue;
        }
        must(!getcontext(&r->context), "getcontext");
        r->context.uc_stack.ss_sp = r->stack;
        r->context.uc_stack.ss_size = STACK;
        makecontext(&r->context, run, 0);
    }
    double end = end_time();
    for (uint64_t turn = 0; now() < end; turn++) {
        current = (int)(turn % COROUTINES);
        struct routine *next = &set->of[current];
        if (unseen(current)) hop(&set->pointer, next->pointer);
        else must(!swapcontext(&set->home, &next->context), "swapcontext");
        if (turn % 64 == 0) check(p, 4 * MiB, (uintptr_t)arg, "memory"), own_stack();
    }
    must(set->of[0].turns > 4, "turns");
    told_of_none();
    for (int i = 0; i < COROUTINES; i++) free(set->of[i].stack);
    free(set);
    free(p);
    return NULL;
}

static int work_c11(void *arg) {
    work(arg);
    thrd_exit(7);
}

int main(void) {
    nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction a = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    must(!sigaction(SIGSEGV, &a, NULL), "sigaction");
    pthread_t other;
    must(!pthread_create(&other, NULL, work, (void *)1), "pthread_create");
    thrd_t another;
    must(thrd_create(&another, work_c11, (void *)3) == thrd_success, "thrd_create");
    work((void *)2);
    pthread_join(other, NULL);
    int code;
    must(thrd_join(another, &code) == thrd_success && code == 7, "thrd_join");
    for (int unmapped = 0; unmapped < 2; unmapped++) {
        /* A stack that is full: no room for the handler's frame either, and the program ends by the
         * signal. */
        pid_t child = fork();
        if (child == 0) {
            char *full = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(!mprotect(full + PAGE, PAGE, PROT_READ | PROT_WRITE), "mprotect");
            if (unmapped) munmap(full, PAGE);
            __asm__ volatile("lea 64(%0), %%rsp\n1: push $0\njmp 1b" ::"r"(full + PAGE) : "memory");
        }
        int status;
        must(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a full stack");
    }
    return done();
}
