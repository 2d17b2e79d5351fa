/* Memory of OpenMP allocators with the trait `partition`. Prints the nodes of its pages, as
 * homenode's hn_where tells them: runs of pages by node.
 *
 *   partition          each function that allocates, with each partition
 *   partition clause   memory that the compiler allocates for `allocate(h : array)`
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PAGES = 64, PAGE = 4096 };

static void show(const char *what, void *p)
{
    int (*where)(const void *, size_t, int32_t *, size_t, size_t *) =
        (int (*)(const void *, size_t, int32_t *, size_t, size_t *))dlsym(RTLD_DEFAULT, "hn_where");
    int32_t nodes[PAGES];
    memset(p, 1, PAGES * PAGE);
    printf("%s", what);
    if (where && where(p, PAGES * PAGE, nodes, PAGES, NULL) == 0)
        for (int i = 0, n = 1; i < PAGES; i++, n++)
            if (i + 1 == PAGES || nodes[i] != nodes[i + 1]) {
                printf(" %dx%d", n, nodes[i]);
                n = 0;
            }
    printf("\n");
}

/* Memory whose allocation is the compiler's: PAGES pages of a private array, or of a variable. */
static void clause(void)
{
    static char array[PAGES * PAGE];
    omp_alloctrait_t traits[] = {{omp_atk_alignment, PAGE}, {omp_atk_partition, omp_atv_blocked}};
    omp_allocator_handle_t h = omp_init_allocator(omp_default_mem_space, 2, traits);
#pragma omp parallel num_threads(1) private(array) allocate(h : array)
    show("clause", array);
    omp_destroy_allocator(h);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        clause();
        return 0;
    }
    static const struct {
        const char *name;
        omp_alloctrait_value_t value;
    } all[] = {{"blocked", omp_atv_blocked}, {"interleaved", omp_atv_interleaved}, {"nearest", omp_atv_nearest}};
    for (int i = 0; i < 3; i++) {
        omp_alloctrait_t traits[] = {{omp_atk_alignment, PAGE}, {omp_atk_partition, all[i].value}};
        omp_allocator_handle_t h = omp_init_allocator(omp_default_mem_space, 2, traits);
        void *p = omp_alloc(PAGES * PAGE, h);
        show(all[i].name, p);
        omp_free(p, h);
        /* As the thread's default allocator, and at each other entry. */
        omp_set_default_allocator(h);
        p = omp_alloc(PAGES * PAGE, omp_null_allocator);
        show("default", p);
        omp_free(p, omp_null_allocator);
        p = omp_aligned_alloc(PAGE, PAGES * PAGE, h);
        show("aligned", p);
        omp_free(p, h);
        p = omp_calloc(PAGES, PAGE, h);
        show("cleared", p);
        p = omp_realloc(p, PAGES * PAGE, h, h);
        show("again", p);
        omp_free(p, h);
        p = omp_aligned_calloc(PAGE, PAGES, PAGE, h);
        show("aligned and cleared", p);
        omp_free(p, h);
        omp_set_default_allocator(omp_default_mem_alloc);
        omp_destroy_allocator(h);
    }
    return 0;
}
