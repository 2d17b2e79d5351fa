/* A stand-in for libhomenode_trace.so, for tests of the compiler drivers only: it is not shipped.
 *
 * It defines what instrumented code calls and counts the accesses of each thread, no more. So it is
 * also the floor for the cost of any recorder: with HN_STANDIN_COUNT=1 the main thread's counts are
 * printed at exit.
 *
 *   gcc -O2 -fPIC -shared -o libhomenode_trace.so standin.c -latomic
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <malloc.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static __thread struct { uint64_t read, written, calls; } count __attribute__((tls_model("initial-exec")));

EXPORT void __tsan_init(void) {}
EXPORT void __tsan_func_entry(void *pc) { (void)pc; }
EXPORT void __tsan_func_exit(void) {}
EXPORT void __tsan_ignore_thread_begin(void) {}
EXPORT void __tsan_ignore_thread_end(void) {}
EXPORT void __tsan_vptr_update(void **p, void *v) { (void)p, (void)v; count.calls++, count.written += 8; }
EXPORT void __tsan_vptr_read(void **p) { (void)p; count.calls++, count.read += 8; }
EXPORT void __tsan_read_range(void *p, size_t n) { (void)p; count.calls++, count.read += n; }
EXPORT void __tsan_write_range(void *p, size_t n) { (void)p; count.calls++, count.written += n; }

#define PLAIN(name, n) \
    EXPORT void __tsan_##name##read##n(void *p) { (void)p; count.calls++, count.read += n; } \
    EXPORT void __tsan_##name##write##n(void *p) { (void)p; count.calls++, count.written += n; } \
    EXPORT void __tsan_##name##read_write##n(void *p) { (void)p; count.calls++, count.read += n, count.written += n; }
#define PLAINS(name) PLAIN(name, 1) PLAIN(name, 2) PLAIN(name, 4) PLAIN(name, 8) PLAIN(name, 16)
PLAINS()
PLAINS(volatile_)
#undef PLAIN
#define PLAIN(name, n) \
    EXPORT void __tsan_unaligned_##name##read##n(void *p) { (void)p; count.calls++, count.read += n; } \
    EXPORT void __tsan_unaligned_##name##write##n(void *p) { (void)p; count.calls++, count.written += n; } \
    EXPORT void __tsan_unaligned_##name##read_write##n(void *p) { (void)p; count.calls++, count.read += n, count.written += n; }
PLAIN(, 2) PLAIN(, 4) PLAIN(, 8) PLAIN(, 16)
PLAIN(volatile_, 2) PLAIN(volatile_, 4) PLAIN(volatile_, 8) PLAIN(volatile_, 16)

#define ATOMICS(bits, T) \
    EXPORT T __tsan_atomic##bits##_load(const volatile T *p, int m) { (void)m; return __atomic_load_n(p, __ATOMIC_SEQ_CST); } \
    EXPORT void __tsan_atomic##bits##_store(volatile T *p, T v, int m) { (void)m; __atomic_store_n(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_exchange(volatile T *p, T v, int m) { (void)m; return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_fetch_add(volatile T *p, T v, int m) { (void)m; return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_fetch_sub(volatile T *p, T v, int m) { (void)m; return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_fetch_and(volatile T *p, T v, int m) { (void)m; return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_fetch_or(volatile T *p, T v, int m) { (void)m; return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_fetch_xor(volatile T *p, T v, int m) { (void)m; return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_fetch_nand(volatile T *p, T v, int m) { (void)m; return __atomic_fetch_nand(p, v, __ATOMIC_SEQ_CST); } \
    EXPORT int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *c, T v, int m, int f) { \
        (void)m, (void)f; return __atomic_compare_exchange_n(p, c, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); } \
    EXPORT int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *c, T v, int m, int f) { \
        (void)m, (void)f; return __atomic_compare_exchange_n(p, c, v, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); } \
    EXPORT T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T c, T v, int m, int f) { \
        (void)m, (void)f; __atomic_compare_exchange_n(p, &c, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); return c; }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
ATOMICS(128, unsigned __int128)
EXPORT void __tsan_atomic_thread_fence(int m) { (void)m; __atomic_thread_fence(__ATOMIC_SEQ_CST); }
EXPORT void __tsan_atomic_signal_fence(int m) { (void)m; __atomic_signal_fence(__ATOMIC_SEQ_CST); }

/* What rewritten code calls: its filter is empty for ever, so every access comes here. r8 to r11
 * hold its block's fields, which do not change. The size is not told. */
__attribute__((used)) static void passed(void) { count.calls++; }
#define PASSED(name) \
    __asm__(".globl homenode_" #name "_passed\n.type homenode_" #name "_passed,@function\nhomenode_" #name "_passed:\n" \
            "\tpush %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\tsub $8, %rsp\n\tcall passed\n" \
            "\tadd $8, %rsp\n\tpop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\tret\n");
PASSED(read) PASSED(write)

/* Copying and filling. */
EXPORT void *__wrap_memcpy(void *d, const void *s, size_t n) { count.calls++, count.read += n, count.written += n; return memcpy(d, s, n); }
EXPORT void *__wrap_memmove(void *d, const void *s, size_t n) { count.calls++, count.read += n, count.written += n; return memmove(d, s, n); }
EXPORT void *__wrap_memset(void *d, int c, size_t n) { count.calls++, count.written += n; return memset(d, c, n); }
EXPORT void *__tsan_memcpy(void *d, const void *s, size_t n) { return __wrap_memcpy(d, s, n); }
EXPORT void *__tsan_memmove(void *d, const void *s, size_t n) { return __wrap_memmove(d, s, n); }
EXPORT void *__tsan_memset(void *d, int c, size_t n) { return __wrap_memset(d, c, n); }

/* The rest goes on unchanged. Each jumps, so that an exception or a cancellation finds no frame of
 * ours. */
#define FORWARD(name) \
    __asm__(".globl __wrap_" #name "\n.type __wrap_" #name ",@function\n__wrap_" #name ":\n\tjmp " #name "@PLT\n");
FORWARD(malloc) FORWARD(calloc) FORWARD(realloc) FORWARD(free)
FORWARD(posix_memalign) FORWARD(aligned_alloc) FORWARD(memalign)
FORWARD(mmap) FORWARD(munmap) FORWARD(mremap) FORWARD(read) FORWARD(pread) FORWARD(fread)
FORWARD(pthread_create) FORWARD(pthread_join)
FORWARD(pthread_mutex_lock) FORWARD(pthread_mutex_unlock) FORWARD(pthread_mutex_trylock)
FORWARD(fork) FORWARD(_exit)

/* A C program has no operator new: the references are weak. */
#define FORWARD_WEAK(name) __asm__(".weak " #name "\n"); FORWARD(name)
FORWARD_WEAK(_Znwm) FORWARD_WEAK(_Znam) FORWARD_WEAK(_ZnwmSt11align_val_t) FORWARD_WEAK(_ZnamSt11align_val_t)
FORWARD_WEAK(_ZnwmRKSt9nothrow_t) FORWARD_WEAK(_ZnamRKSt9nothrow_t)
FORWARD_WEAK(_ZnwmSt11align_val_tRKSt9nothrow_t) FORWARD_WEAK(_ZnamSt11align_val_tRKSt9nothrow_t)
FORWARD_WEAK(_ZdlPv) FORWARD_WEAK(_ZdaPv) FORWARD_WEAK(_ZdlPvm) FORWARD_WEAK(_ZdaPvm)
FORWARD_WEAK(_ZdlPvSt11align_val_t) FORWARD_WEAK(_ZdaPvSt11align_val_t)
FORWARD_WEAK(_ZdlPvmSt11align_val_t) FORWARD_WEAK(_ZdaPvmSt11align_val_t)
FORWARD_WEAK(_ZdlPvRKSt9nothrow_t) FORWARD_WEAK(_ZdaPvRKSt9nothrow_t)
FORWARD_WEAK(_ZdlPvSt11align_val_tRKSt9nothrow_t) FORWARD_WEAK(_ZdaPvSt11align_val_tRKSt9nothrow_t)

__attribute__((destructor)) static void print_counts(void) {
    if (getenv("HN_STANDIN_COUNT"))
        fprintf(stderr, "standin: calls %llu read %llu written %llu\n", (unsigned long long)count.calls,
                (unsigned long long)count.read, (unsigned long long)count.written);
}
