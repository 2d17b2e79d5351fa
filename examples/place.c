/* Places memory on every node in turn, touches it from every node in turn, and checks where it is:
 * the four things that Robertson and Rendell (section 2) ask of a system before anybody can study
 * placement on it.
 *
 *   cc place.c $(pkg-config --cflags --libs homenode) -o place && ./place
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <homenode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 4 << 20, MOST = 64 };

/* Everything here must work; what does not says why. */
static void must(int code, const char *what)
{
    if (code == HN_OK)
        return;
    fprintf(stderr, "place: %s: %s: %s\n", what, hn_message(code), hn_last_error());
    exit(1);
}

/* Fresh memory placed on `home`, touched by a thread on `from`: all of it is on `home`, page by
 * page. */
static void place_and_check(int32_t from, int32_t home)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("place: mmap");
        exit(1);
    }
    must(hn_place(memory, BYTES, home), "place");
    memset(memory, 1, BYTES);
    hn_placement found;
    must(hn_verify(memory, BYTES, home, &found), "verify");
    static int32_t nodes[BYTES / 4096];
    size_t pages;
    must(hn_where(memory, BYTES, nodes, sizeof nodes / sizeof *nodes, &pages), "where");
    for (size_t i = 0; i < pages; i++)
        if (nodes[i] != home) {
            fprintf(stderr, "place: page %zu is on node %d, not on %d\n", i, (int)nodes[i], (int)home);
            exit(1);
        }
    int32_t distance;
    must(hn_distance(from, home, &distance), "distance");
    printf("thread on node %d, memory on node %d: %llu pages, distance %d\n", (int)from, (int)home,
           (unsigned long long)found.there, (int)distance);
    munmap(memory, BYTES);
}

/* Memory that one node has is moved to another, with its contents. */
static void move_and_check(int32_t from, int32_t to)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("place: mmap");
        exit(1);
    }
    must(hn_place(memory, BYTES, from), "place");
    for (size_t i = 0; i < BYTES; i++)
        memory[i] = (char)(i / 4096);
    hn_placement found;
    must(hn_move(memory, BYTES, to, &found), "move");
    for (size_t i = 0; i < BYTES; i++)
        if (memory[i] != (char)(i / 4096)) {
            fprintf(stderr, "place: byte %zu changed\n", i);
            exit(1);
        }
    printf("moved from node %d to node %d: %llu pages\n", (int)from, (int)to, (unsigned long long)found.there);
    munmap(memory, BYTES);
}

int main(void)
{
    int32_t nodes[MOST];
    size_t count;
    must(hn_nodes(nodes, MOST, &count), "nodes");
    int32_t last = -1;
    for (size_t t = 0; t < count; t++) {
        hn_node thread;
        must(hn_node_info(nodes[t], &thread), "node");
        printf("node %d: %d CPUs, %llu MiB\n", (int)thread.number, (int)thread.cpus,
               (unsigned long long)(thread.memory >> 20));
        if (thread.cpus == 0)
            continue;
        must(hn_bind_node(nodes[t]), "bind");
        int32_t here;
        must(hn_here(NULL, &here), "here");
        if (here != nodes[t]) {
            fprintf(stderr, "place: bound to node %d, on node %d\n", (int)nodes[t], (int)here);
            exit(1);
        }
        for (size_t m = 0; m < count; m++) {
            hn_node memory;
            must(hn_node_info(nodes[m], &memory), "node");
            if (memory.memory == 0)
                continue;
            place_and_check(nodes[t], nodes[m]);
            if (last >= 0 && last != nodes[m])
                move_and_check(last, nodes[m]);
            last = nodes[m];
        }
        must(hn_unbind(), "unbind");
    }
    /* What cannot be says so. */
    if (hn_bind_node(4711) != HN_ENODE || hn_place(NULL, BYTES, 0) != HN_EINVAL) {
        fprintf(stderr, "place: nonsense was accepted\n");
        return 1;
    }
    printf("ok\n");
    return 0;
}
