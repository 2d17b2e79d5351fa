/* Fills a node of the lab until Linux takes other nodes' memory instead, then runs a command and
 * keeps the memory meanwhile.
 *
 * fill NODE COMMAND…
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PREFERRED = 1, DEFAULT = 0, ELSEWHERE = 64 };

static int node_of(void *page)
{
    int node = -1;
    return syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0) ? -1 : node;
}

static int fill(int node, size_t *filled)
{
    for (int elsewhere = 0; elsewhere < ELSEWHERE;) {
        char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            perror("mmap");
            return 1;
        }
        *page = 1;
        if (node_of(page) == node) {
            elsewhere = 0;
            ++*filled;
        } else {
            elsewhere++;
            munmap(page, PAGE);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int node = atoi(argv[1]);
    unsigned long mask = 1UL << node;
    if (syscall(SYS_set_mempolicy, PREFERRED, &mask, 8 * sizeof mask)) {
        perror("set_mempolicy");
        return 1;
    }
    /* A node that is nearly full has the kernel free what it can: until nothing comes of that. */
    size_t filled = 0;
    for (size_t before = 1; filled != before; usleep(100 * 1000)) {
        before = filled;
        if (fill(node, &filled))
            return 1;
    }
    fprintf(stderr, "filled %zu pages of node %d\n", filled, node);
    if (syscall(SYS_set_mempolicy, DEFAULT, NULL, 0UL)) {
        perror("set_mempolicy");
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status = 1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
