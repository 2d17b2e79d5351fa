/* Streams and folders, whose buffers the C library allocates among the program's blocks and reads
 * by calls of its own. */
#include "hostile.h"
#include <dirent.h>

enum { BLOCKS = 12288, LINES = 3000, STREAMS = 24 };

/* Blocks as long as a stream's buffer: one that is freed becomes such a buffer, in memory that may
 * be armed. */
static char *blocks[BLOCKS];

static void make_holes(int n) {
    static unsigned at;
    for (int i = 0; i < n; i++, at++) {
        char **b = &blocks[at * 311 % BLOCKS];
        free(*b);
        *b = NULL;
    }
    usleep(1500); /* time to arm them */
}

static void fill_holes(void) {
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i]) continue;
        must((blocks[i] = malloc(PAGE)) != NULL, "malloc");
        memset(blocks[i], 1, PAGE);
    }
}

static void wrong(const char *what, long have, long want) {
    fprintf(stderr, "%s: %ld instead of %ld (%s)\n", what, have, want, strerror(errno));
    wrong_bytes++;
}

static void expect(const char *what, long have, long want) {
    if (have != want) wrong(what, have, want);
}

static void write_file(const char *path, const char *mode, int from, int to) {
    FILE *f = fopen(path, mode);
    must(f != NULL, path);
    usleep(300);
    for (int i = from; i < to; i++) fprintf(f, "%d\n", i);
    expect("fclose after fprintf", fclose(f), 0);
}

/* One way to read all numbers; how many were right. */
static int numbers(FILE *f, int way) {
    int i = 0, x = 0;
    char text[64], *line = NULL;
    size_t room = 0;
    for (; i < LINES; i++) {
        if (way == 0 && fscanf(f, "%d", &x) != 1) break;
        if (way == 1 && (!fgets(text, sizeof text, f) || sscanf(text, "%d", &x) != 1)) break;
        if (way == 2 && (getline(&line, &room, f) < 0 || sscanf(line, "%d", &x) != 1)) break;
        if (way == 3 && (fread(text, 1, 1, f) != 1 || ungetc(text[0], f) == EOF || fscanf(f, "%d ", &x) != 1)) break;
        if (x != i) break;
    }
    free(line);
    return i;
}

static void read_files(const char *path) {
    FILE *f[STREAMS];
    make_holes(3 * STREAMS);
    for (int i = 0; i < STREAMS; i++) must((f[i] = fopen(path, "r")) != NULL, path);
    usleep(1500);
    for (int i = 0; i < STREAMS; i++) {
        errno = 0;
        expect("numbers of a file", numbers(f[i], i % 4), LINES);
        if (i % 8 == 0) usleep(1500);
    }
    for (int i = 0; i < STREAMS; i++) fclose(f[i]);
    fill_holes();
}

static void read_folders(const char *folder) {
    DIR *d[STREAMS];
    make_holes(32 * STREAMS);
    for (int i = 0; i < STREAMS; i++) must((d[i] = opendir(folder)) != NULL, "opendir");
    usleep(1500);
    for (int i = 0; i < STREAMS; i++) {
        int entries = 0;
        while (readdir(d[i])) entries++;
        expect("entries of a folder", entries, 3);
        closedir(d[i]);
    }
    char *here = getcwd(NULL, 0);
    must(here != NULL, "getcwd");
    free(here);
    fill_holes();
}

static void read_commands(void) {
    make_holes(8);
    FILE *p = popen("echo 12345", "r");
    int x = 0;
    must(p != NULL, "popen");
    usleep(1500);
    expect("numbers of a command", fscanf(p, "%d", &x) == 1 ? x : -1, 12345);
    pclose(p);
    fill_holes();
}

int main(void) {
    uint64_t *other = malloc(4 * MiB);
    fill_holes();
    char folder[] = "/tmp/hostile-stdio-XXXXXX", path[64];
    must(mkdtemp(folder) != NULL, "mkdtemp");
    snprintf(path, sizeof path, "%s/numbers", folder);
    double end = end_time();
    do {
        fill(other, 4 * MiB, 1);
        make_holes(8);
        write_file(path, "w", 0, LINES / 2);
        write_file(path, "a", LINES / 2, LINES);
        fill_holes();
        read_files(path);
        read_folders(folder);
        read_commands();
        check(other, 4 * MiB, 1, "other memory");
    } while (now() < end);
    must(!remove(path) && !remove(folder), "remove");
    return done();
}
