/* read, pread, fread, getline from a file that the program writes itself; errno after a failure;
 * exec. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    FILE *f = tmpfile();
    static char buf[20000];
    for (int i = 0; i < 20000; i++) buf[i] = "0123456789abcde\n"[i % 16];
    fwrite(buf, 1, sizeof buf, f);
    fflush(f);
    memset(buf, 0, sizeof buf);
    int fd = fileno(f);
    printf("%zd %c\n", pread(fd, buf, 100, 5), buf[3]);
    lseek(fd, 0, SEEK_SET);
    printf("%zd %c\n", read(fd, buf, 19000), buf[18999]);
    rewind(f);
    printf("%zu %c\n", fread(buf, 16, 1250, f), buf[19998]);
    rewind(f);
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, f);
    printf("%zd %.15s\n", n, line);
    free(line);
    errno = 0;
    ssize_t r = read(-1, buf, 10);
    printf("%zd %d\n", r, errno == EBADF);
    errno = 0;
    r = read(fd, (void *)8, 10);
    printf("%zd %d\n", r, errno == EFAULT || r == 0);
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "echo from the shell; exit 3", (char *)NULL);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%d %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 5")));
    return 0;
}
