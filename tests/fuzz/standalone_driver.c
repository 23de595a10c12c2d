// Replays saved inputs through a fuzz target without libFuzzer, so that every finding stays a test of the
// normal run. Arguments: files, or directories whose regular files are taken in name order. The empty input
// is always tried first. Knows nothing of what the target tests; a finding shows as the sanitizer's abort.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
// A target that needs a set-up defines it; libFuzzer calls it too.
[[gnu::weak]] int LLVMFuzzerInitialize(int *argc, char ***argv);

static int usage_error(const char *path) {
    perror(path);
    return -1;
}

// Each input gets an allocation of exactly its size, so that reading past its end is seen.
static int replay_file(const char *path) {
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        if (f) fclose(f);
        return usage_error(path);
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    bool read_whole = data && fread(data, 1, size, f) == size;
    fclose(f);
    if (!read_whole) {
        free(data);
        return usage_error(path);
    }
    // Said before the run: after an abort the last line names the input.
    printf("%s (%zu bytes)\n", path, size);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

// Number of inputs replayed, or -1.
static int replay_dir(const char *path) {
    struct dirent **entries;
    int n = scandir(path, &entries, visible, alphasort);
    if (n < 0) return usage_error(path);
    int done = 0;
    for (int i = 0; i < n; i++) {
        char *file = nullptr;
        if (done >= 0 && asprintf(&file, "%s/%s", path, entries[i]->d_name) >= 0) {
            int one = replay_file(file);
            done = one < 0 ? -1 : done + one;
            free(file);
        }
        free(entries[i]);
    }
    free(entries);
    return done;
}

int main(int argc, char **argv) {
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    int inputs = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0) return usage_error(argv[i]), 2;
        int n = S_ISDIR(st.st_mode) ? replay_dir(argv[i]) : replay_file(argv[i]);
        if (n < 0) return 2;
        inputs += n;
    }
    printf("%d inputs replayed\n", inputs);
    return 0;
}
