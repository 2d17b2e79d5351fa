/* Paths, and what is known of files, in memory that may be armed; folders that are read while it
 * is. */
#include "hostile.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Where the next path or struct goes: another page each time. */
static char *block;
static const size_t size = 2 * MiB;
static void *place(void) {
    static size_t at;
    at = (at + 5 * PAGE + 64) % (size - 2 * PAGE);
    return block + at;
}

static char *path(const char *folder, const char *name) {
    char *p = place();
    sprintf(p, "%s/%s", folder, name);
    usleep(300); /* time to arm it */
    return p;
}

/* As programs call it that were built for glibc 2.32 or older. */
int __xstat(int version, const char *path, struct stat *out);

int main(void) {
    block = malloc(size);
    memset(block, 1, size);
    char folder[] = "/tmp/hostile-paths-XXXXXX";
    must(mkdtemp(folder) != NULL, "mkdtemp");
    must(access((char *)PAGE, F_OK) && errno == EFAULT && open((char *)PAGE, O_RDONLY) == -1 && errno == EFAULT, "no path");
    double end = end_time();
    while (now() < end) {
        int fd = open(path(folder, "a"), O_CREAT | O_RDWR, 0600);
        must(fd >= 0 && write(fd, "12345", 5) == 5, "open");
        struct stat *s = place();
        must(!stat(path(folder, "a"), s) && s->st_size == 5, "stat");
        must(!lstat(path(folder, "a"), s) && s->st_size == 5, "lstat");
        must(!__xstat(1, path(folder, "a"), s) && s->st_size == 5, "__xstat");
        usleep(1500);
        must(!fstat(fd, s) && s->st_size == 5, "fstat");
        must(!fstatat(AT_FDCWD, path(folder, "a"), s, 0) && s->st_size == 5, "fstatat");
        must(!close(fd), "close");
        must(!access(path(folder, "a"), R_OK), "access");
        must(!rename(path(folder, "a"), path(folder, "b")), "rename");
        must(!symlink(path(folder, "b"), path(folder, "c")), "symlink");
        char *target = place();
        must(readlink(path(folder, "c"), target, 100) > 0, "readlink");
        must(!mkdir(path(folder, "d"), 0700), "mkdir");
        DIR *d = opendir(path(folder, "."));
        must(d != NULL, "opendir");
        usleep(1500);
        int entries = 0;
        while (readdir(d)) entries++;
        if (entries != 5) wrong_bytes++, fprintf(stderr, "readdir: %d entries instead of 5\n", entries);
        closedir(d);
        FILE *f = fopen(path(folder, "b"), "r");
        must(f != NULL && fgetc(f) == '1' && !fclose(f), "fopen");
        must(!truncate(path(folder, "b"), 0) && !chmod(path(folder, "b"), 0600), "truncate");
        must(!unlink(path(folder, "c")) && !unlink(path(folder, "b")) && !rmdir(path(folder, "d")), "unlink");
    }
    must(!rmdir(folder), "rmdir");
    return done();
}
