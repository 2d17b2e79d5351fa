/* Handlers that access memory, on the program's stack and on another; timer signals in the middle
 * of work. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t usr1, alarms, usr2;
static char seen[256], alt[1 << 16];
static void on_usr1(int s) {
    for (int i = 0; i < 256; i++) seen[i]++;
    usr1 += s == SIGUSR1;
}
static void on_usr2(int s, siginfo_t *info, void *context) {
    (void)s, (void)context;
    char copy[256];
    memcpy(copy, seen, sizeof copy);
    usr2 += info->si_signo == SIGUSR2 && (char *)copy >= alt && (char *)copy < alt + sizeof alt;
}
static void on_alarm(int s) {
    (void)s;
    alarms++;
    seen[0]++, seen[0]--;
}
static void *thread(void *arg) {
    raise(SIGUSR1);
    return arg;
}

int main(void) {
    struct sigaction a = {.sa_handler = on_usr1}, b = {.sa_sigaction = on_usr2, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction c = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    stack_t stack = {.ss_sp = alt, .ss_size = sizeof alt};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &a, NULL), sigaction(SIGUSR2, &b, NULL), sigaction(SIGALRM, &c, NULL);
    for (int i = 0; i < 20; i++) raise(SIGUSR1), raise(SIGUSR2);
    struct itimerval t = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &t, NULL);
    static long v[4096];
    long rounds = 0;
    while (alarms < 50) {
        for (int i = 0; i < 4096; i++) v[i] = rounds + i;
        char *p = malloc(100 + rounds % 50);
        p[0] = 1;
        free(p);
        rounds++;
    }
    memset(&t, 0, sizeof t);
    setitimer(ITIMER_REAL, &t, NULL);
    pthread_t id;
    pthread_create(&id, NULL, thread, NULL);
    pthread_join(id, NULL);
    printf("%d %d %d %d\n", (int)usr1, (int)usr2, (int)(alarms >= 50), (int)seen[0]);
    return 0;
}
