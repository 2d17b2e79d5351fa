// Loaded into the test programs: writes down the call stack of every large allocation, and the
// loaded modules at the end. Form of a line: "alloc BYTES FRAME…" or "module BASE LOW HIGH PATH",
// numbers in hexadecimal.
// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>

enum { LARGE = 65536, FRAMES = 16 };

static FILE *out;
static __thread int inside;

struct walk {
    unsigned long frames[FRAMES];
    int found;
};

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *data) {
    struct walk *walk = data;
    unsigned long pc = _Unwind_GetIP(context);
    Dl_info there, here;
    dladdr((void *)frame, &here);
    if (pc && !(dladdr((void *)pc, &there) && there.dli_fbase == here.dli_fbase))
        walk->frames[walk->found++] = pc;
    return walk->found == FRAMES || !pc ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

static void tell(size_t bytes) {
    if (bytes < LARGE || !out || inside++)
        return;
    struct walk walk = {.found = 0};
    _Unwind_Backtrace(frame, &walk);
    fprintf(out, "alloc %zx", bytes);
    for (int i = 0; i < walk.found; i++)
        fprintf(out, " %lx", walk.frames[i]);
    fputc('\n', out);
    inside--;
}

static int module(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    unsigned long low = -1ul, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD) {
            low = p->p_vaddr < low ? p->p_vaddr : low;
            high = p->p_vaddr + p->p_memsz > high ? p->p_vaddr + p->p_memsz : high;
        }
    }
    char self[4096];
    const char *path = info->dlpi_name;
    int *number = data;
    if (!(*number)++) {
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        self[length > 0 ? length : 0] = 0;
        path = self;
    }
    fprintf(out, "module %lx %lx %lx %s\n", (unsigned long)info->dlpi_addr, low, high, path);
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    inside++;
    const char *path = getenv("ALLOCATIONS");
    FILE *file = path ? fopen(path, "we") : NULL;
    inside--;
    out = file;
}

__attribute__((destructor)) static void end(void) {
    if (!out)
        return;
    inside++;
    int number = 0;
    dl_iterate_phdr(module, &number);
    fclose(out);
    out = NULL;
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t n) {
    tell(n);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m) {
    tell(n * m);
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n) {
    tell(n);
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t a, size_t n) {
    tell(n);
    return __libc_memalign(a, n);
}

int posix_memalign(void **p, size_t a, size_t n) {
    tell(n);
    *p = __libc_memalign(a, n);
    return *p ? 0 : ENOMEM;
}
