/* C11 atomics: 1 to 16 bytes, all orders, all operations, with the results checked, alone and in
 * parallel. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static int bad;
#define CHECK(e) \
    do { \
        if (!(e)) bad++, printf("line %d: %s\n", __LINE__, #e); \
    } while (0)

#define ORDERED(name, T, order, load_order, store_order) \
    static void name(void) { \
        _Atomic T x; \
        atomic_init(&x, (T)5); \
        CHECK(atomic_load_explicit(&x, load_order) == (T)5); \
        atomic_store_explicit(&x, (T)9, store_order); \
        CHECK(atomic_exchange_explicit(&x, (T)12, order) == (T)9); \
        CHECK(atomic_fetch_add_explicit(&x, (T)3, order) == (T)12); \
        CHECK(atomic_fetch_sub_explicit(&x, (T)1, order) == (T)15); \
        CHECK(atomic_fetch_and_explicit(&x, (T)12, order) == (T)14); \
        CHECK(atomic_fetch_or_explicit(&x, (T)3, order) == (T)12); \
        CHECK(atomic_fetch_xor_explicit(&x, (T)5, order) == (T)15); \
        CHECK(x == (T)10); \
        CHECK(__atomic_fetch_nand((T *)&x, (T)6, order) == (T)10); \
        CHECK(x == (T) ~(T)2); \
        atomic_store(&x, (T)-1); \
        CHECK(atomic_fetch_add_explicit(&x, (T)1, order) == (T)-1 && x == (T)0); \
        T expected = (T)77; \
        CHECK(!atomic_compare_exchange_strong_explicit(&x, &expected, (T)1, order, load_order)); \
        CHECK(expected == (T)0 && x == (T)0); \
        CHECK(atomic_compare_exchange_strong_explicit(&x, &expected, (T)200, order, load_order)); \
        expected = (T)200; \
        while (!atomic_compare_exchange_weak_explicit(&x, &expected, (T)7, order, load_order)) \
            CHECK(expected == (T)200); \
        CHECK(x == (T)7); \
    }
#define ALL(T) \
    ORDERED(relaxed_##T, T, memory_order_relaxed, memory_order_relaxed, memory_order_relaxed) \
    ORDERED(consume_##T, T, memory_order_consume, memory_order_consume, memory_order_relaxed) \
    ORDERED(acquire_##T, T, memory_order_acquire, memory_order_acquire, memory_order_relaxed) \
    ORDERED(release_##T, T, memory_order_release, memory_order_relaxed, memory_order_release) \
    ORDERED(acqrel_##T, T, memory_order_acq_rel, memory_order_acquire, memory_order_release) \
    ORDERED(seqcst_##T, T, memory_order_seq_cst, memory_order_seq_cst, memory_order_seq_cst) \
    static void all_##T(void) { relaxed_##T(), consume_##T(), acquire_##T(), release_##T(), acqrel_##T(), seqcst_##T(); }
typedef unsigned __int128 uint128_t;
ALL(uint8_t) ALL(uint16_t) ALL(uint32_t) ALL(uint64_t) ALL(uint128_t)

struct pair { _Alignas(16) uint64_t a, b; };
struct odd { char c[24]; };

int main(void) {
    all_uint8_t(), all_uint16_t(), all_uint32_t(), all_uint64_t(), all_uint128_t();
    _Atomic double d = 1.5;
    double e = 1.5;
    CHECK(atomic_compare_exchange_strong(&d, &e, 2.5));
    d += 1;
    CHECK(d == 3.5);
    int cells[4], *_Atomic p = cells;
    p = cells + 2; /* atomic_fetch_add on pointers counts bytes in GCC, elements in clang */
    CHECK(atomic_exchange(&p, cells) == cells + 2 && p == cells);
    _Atomic struct pair s;
    atomic_init(&s, ((struct pair){1, 2}));
    struct pair t = s;
    while (!atomic_compare_exchange_weak(&s, &t, ((struct pair){3, 4}))) {
    }
    t = atomic_load(&s);
    CHECK(t.a == 3 && t.b == 4);
    _Atomic struct odd o; /* 24 bytes: through libatomic's own lock */
    struct odd v = {"a string of 23 letters."};
    atomic_store(&o, v);
    v = atomic_exchange(&o, v);
    CHECK(v.c[22] == '.');
    atomic_flag f = ATOMIC_FLAG_INIT;
    CHECK(!atomic_flag_test_and_set(&f) && atomic_flag_test_and_set(&f));
    atomic_flag_clear(&f);
    CHECK(__sync_fetch_and_add(&cells[0], 0) == cells[0] && __sync_bool_compare_and_swap(&cells[1], cells[1], 4));
    __sync_synchronize();

    static _Atomic uint8_t c8;
    static _Atomic uint16_t c16;
    static _Atomic uint32_t c32;
    static _Atomic uint64_t c64;
    static _Atomic uint128_t c128;
    static _Atomic double cd;
#pragma omp parallel for
    for (int i = 0; i < 4000; i++) {
        atomic_fetch_add_explicit(&c8, 1, memory_order_relaxed);
        c16++;
        atomic_fetch_sub_explicit(&c32, 1, memory_order_acq_rel);
        uint64_t old = atomic_load_explicit(&c64, memory_order_acquire);
        while (!atomic_compare_exchange_weak_explicit(&c64, &old, old + 3, memory_order_release, memory_order_relaxed)) {
        }
        c128 += ((uint128_t)1 << 64) + 1;
        cd += 0.25;
        atomic_thread_fence(memory_order_seq_cst);
        atomic_signal_fence(memory_order_acq_rel);
    }
    uint128_t w = c128;
    printf("%u %u %u %lu %lu %lu %g bad %d\n", (unsigned)c8, (unsigned)c16, (unsigned)c32, (unsigned long)c64,
           (unsigned long)(w >> 64), (unsigned long)w, (double)cd, bad);
    return bad != 0;
}
