/* Every way in which a process and its threads can end. Unlike the others, this program does not
 * judge
 * itself: its output and its end are compared with a run without homenode. argv[1]: the way.
 * HOSTILE_ARMED: memory is armed before it ends. */
#include "hostile.h"
#include <signal.h>
#include <sys/syscall.h>
#include <threads.h>

enum { THREADS = 4 };

static size_t n = 4 * MiB;
static uint64_t *p;
static pthread_t first;
static pthread_barrier_t barrier;

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(99);
}

/* Memory is right, also after the first thread has gone. */
static void look(void) {
    check(p, n, 3, "memory");
    if (wrong_bytes) say("wrong\n");
}

static int first_ends;

/* Until the first thread has gone, where it goes, so that what is said comes in one order. */
static void wait_for_first(int milliseconds) {
    for (int round = 0; first_ends && round < 20000; round++) {
        char text[256] = {0};
        int fd = open("/proc/self/stat", O_RDONLY);
        must(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "/proc/self/stat");
        close(fd);
        if (strrchr(text, ')')[2] == 'Z') break;
        usleep(1000);
    }
    usleep((useconds_t)(1000 * milliseconds));
}

static void at_exit(void) { say("atexit\n"); }
static void at_quick(void) { say("at_quick_exit\n"); }
static void of_key(void *v) { say(v), look(); }
static void of_cleanup(void *v) { say(v); }
__attribute__((destructor)) static void at_end(void) { say("destructor\n"); }

static void *later(void *ms) {
    wait_for_first((int)(intptr_t)ms);
    look();
    say("later\n");
    return NULL;
}

static void *together(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void *exits(void *code) {
    wait_for_first(20);
    look();
    exit((int)(intptr_t)code);
}

static void *exits_at_once(void *code) {
    wait_for_first(20);
    _exit((int)(intptr_t)code);
}

static void *exits_quickly(void *code) {
    wait_for_first(20);
    quick_exit((int)(intptr_t)code);
}

static void *aborts(void *unused) {
    (void)unused;
    wait_for_first(20);
    abort();
}

static void *cancels(void *unused) {
    (void)unused;
    wait_for_first(20);
    pthread_cancel(first);
    pthread_join(first, NULL);
    look();
    say("cancelled\n");
    return NULL;
}

static void *kills(void *s) {
    wait_for_first(20);
    kill(getpid(), (int)(intptr_t)s);
    sleep(20);
    say("not killed\n");
    return NULL;
}

static void *executes(void *unused) {
    (void)unused;
    wait_for_first(20);
    char *args[] = {"sh", "-c", "echo another program; exit 9", NULL};
    execv("/bin/sh", args);
    return NULL;
}

static void *sleeps(void *unused) {
    for (;;) pause();
    return unused;
}

static void *forks(void *unused) {
    (void)unused;
    wait_for_first(0);
    first_ends = 0;
    pid_t child = fork();
    if (!child) {
        look();
        say("child\n");
        pthread_exit(NULL);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    say(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "child ended\n" : "child failed\n");
    return NULL;
}

static void handled(int s) {
    (void)s;
    say("handled\n");
    _exit(11);
}

static pthread_t start(void *(*f)(void *), intptr_t argument) {
    pthread_t t;
    must(!pthread_create(&t, NULL, f, (void *)argument), "pthread_create");
    return t;
}

static void raw_exit(int code) {
    __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(code) : "rcx", "r11", "memory");
}

#define WAY(name) if (!strcmp(way, name))

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "returns";
    setvbuf(stdout, NULL, _IOFBF, 4096);
    p = malloc(n);
    fill(p, n, 3);
    if (getenv("HOSTILE_ARMED")) wait_until_armed(p, n, "its memory");
    first = pthread_self();
    atexit(at_exit);
    at_quick_exit(at_quick);
    pthread_key_t key;
    must(!pthread_key_create(&key, of_key) && !pthread_setspecific(key, "key\n"), "a key");
    printf("buffered\n");
    first_ends = !strncmp(way, "first-ends", 10);

    WAY("returns") return 7;
    WAY("exits") exit(8);
    WAY("exits-at-once") _exit(9);
    WAY("exits-quickly") quick_exit(10);
    WAY("aborts") abort();
    WAY("raises-term") raise(SIGTERM);
    WAY("raises-kill") raise(SIGKILL);
    WAY("raises-bus") raise(SIGBUS);
    WAY("raises-segv") raise(SIGSEGV);
    WAY("faults") *(volatile int *)8 = 1;
    WAY("returns-beside-others") return start(sleeps, 0), start(sleeps, 0), usleep(1000), 12;
    WAY("other-exits") start(exits, 13), sleeps(NULL);
    WAY("other-exits-at-once") start(exits_at_once, 14), sleeps(NULL);
    WAY("other-exits-quickly") start(exits_quickly, 15), sleeps(NULL);
    WAY("other-aborts") start(aborts, 0), sleeps(NULL);
    WAY("other-executes") start(executes, 0), sleeps(NULL);
    WAY("executes") executes(NULL);
    WAY("killed") start(kills, SIGTERM), sleeps(NULL);
    WAY("alarmed") { alarm(1); sleeps(NULL); }

    WAY("first-ends-alone") pthread_exit(NULL);
    WAY("first-ends-with-cleanup") {
        pthread_cleanup_push(of_cleanup, "cleanup\n");
        pthread_exit(NULL);
        pthread_cleanup_pop(0);
    }
    WAY("first-ends-c11") thrd_exit(3);
    WAY("first-ends-before-one") { start(later, 50); pthread_exit(NULL); }
    WAY("first-ends-before-many") { for (int i = 0; i < THREADS; i++) start(later, 20 + 10 * i); pthread_exit(NULL); }
    WAY("first-ends-after-others") {
        first_ends = 0;
        pthread_join(start(later, 1), NULL); pthread_exit(NULL); }
    WAY("all-end-together") {
        pthread_barrier_init(&barrier, NULL, THREADS + 1);
        for (int i = 0; i < THREADS; i++) start(together, 0);
        pthread_barrier_wait(&barrier);
        pthread_exit(NULL);
    }
    WAY("first-ends-other-exits") { start(exits, 21); pthread_exit(NULL); }
    WAY("first-ends-other-exits-at-once") { start(exits_at_once, 22); pthread_exit(NULL); }
    WAY("first-ends-other-exits-quickly") { start(exits_quickly, 23); pthread_exit(NULL); }
    WAY("first-ends-other-aborts") { start(aborts, 0); pthread_exit(NULL); }
    WAY("first-ends-other-executes") { start(executes, 0); pthread_exit(NULL); }
    WAY("first-ends-then-term") { start(kills, SIGTERM); pthread_exit(NULL); }
    WAY("first-ends-then-kill") { start(kills, SIGKILL); pthread_exit(NULL); }
    WAY("first-ends-then-handler") { signal(SIGUSR1, handled); start(kills, SIGUSR1); pthread_exit(NULL); }
    WAY("first-is-cancelled") { start(cancels, 0); sleeps(NULL); }
    WAY("first-ends-other-forks") { start(forks, 0); pthread_exit(NULL); }
    WAY("child-ends-so") return forks(NULL), 24;
    WAY("first-ends-by-call") { start(later, 50); syscall(SYS_exit, 25); }
    WAY("first-ends-raw") { start(later, 50); raw_exit(26); }
    return 98;
}
