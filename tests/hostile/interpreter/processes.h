/* Operations of the interpreter that make children.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
static char clone_stack[64 << 10] __attribute__((aligned(16)));

struct child {
    int at, report;
    long ends;
};

static int run_child(void *arg) {
    struct child *k = arg;
    struct context c = {1};
    run_inside(&c, k->at);
    must(write(k->report, &c.digest, sizeof c.digest) == sizeof c.digest, "report");
    switch (k->ends % 5) {
    case 1: kill(getpid(), SIGKILL); break;
    case 2: abort();
    case 3: raise(SIGTERM); break;
    default: break;
    }
    _exit((int)(c.digest % 100));
}

/* fork WAY ENDS: a child that runs the block on its own copy. */
static void op_fork(struct context *c, const long *a, int at) {
    int fds[2], status;
    must(pipe(fds) == 0, "pipe");
    struct child k = {at, fds[1], a[1]};
    pid_t child = a[0] == 1   ? _Fork()
                  : a[0] == 2 ? clone(run_child, clone_stack + sizeof clone_stack, SIGCHLD, &k)
                              : fork();
    must(child >= 0, "fork");
    if (child == 0) run_child(&k);
    close(fds[1]);
    uint64_t digest = 0;
    must(read(fds[0], &digest, sizeof digest) == sizeof digest, "the child's report");
    close(fds[0]);
    must(waitpid(child, &status, 0) == child, "waitpid");
    note(c, digest);
    note(c, (uint64_t)(status & ~0x80));
}

/* spawn WAY SLOT: another program, by posix_spawn, vfork and exec, popen or system. Its argument
 * lies in the slot. */
static void op_spawn(struct context *c, const long *a, int at) {
    (void)at;
    struct slot *s = slot(a[1]);
    if (!s) return;
    int status = 0, fds[2];
    char *text = (char *)s->p, *rest = text + PAGE;
    char line[64] = {0};
    strcpy(text, "echo");
    strcpy(rest, "hello from the child");
    char **args = (char **)(s->p + 2048);
    args[0] = text;
    args[1] = rest;
    args[2] = NULL;
    if (a[0] % 4 == 3) {
        strcpy(text, "exit 7");
        note(c, (uint64_t)system(text));
    } else if (a[0] % 4 == 2) {
        strcpy(text, "echo through a pipe");
        FILE *f = popen(text, "r");
        must(f && fgets(line, sizeof line, f), "popen");
        note(c, (uint64_t)pclose(f));
    } else {
        must(pipe(fds) == 0, "pipe");
        pid_t child = 0;
        if (a[0] % 4 == 1) {
            if ((child = vfork()) == 0) {
                dup2(fds[1], 1);
                execv("/bin/echo", args);
                _exit(99);
            }
        } else {
            posix_spawn_file_actions_t actions;
            posix_spawn_file_actions_init(&actions);
            posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
            must(posix_spawn(&child, "/bin/echo", &actions, NULL, args, environ) == 0, "posix_spawn");
            posix_spawn_file_actions_destroy(&actions);
        }
        close(fds[1]);
        must(read(fds[0], line, sizeof line - 1) > 0, "the child's output");
        close(fds[0]);
        must(waitpid(child, &status, 0) == child, "waitpid");
    }
    for (size_t i = 0; i < sizeof line; i++) note(c, (unsigned char)line[i]);
    note(c, (uint64_t)status);
    memset(s->p, 0, 2 * PAGE);
}
