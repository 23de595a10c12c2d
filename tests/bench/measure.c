// measure: runs one command and prints what it took, as JSON: wall and CPU milliseconds, peak KiB, exit code.
//   measure COMMAND [ARG…]
// A launcher of its own, because the peak of a child counts from the memory of the process that forked it,
// and an interpreter is large.
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double ms(struct timeval t) {
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    double from = now_ms();
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++) dup2(null, fd);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    int status;
    struct rusage ru;
    if (pid < 0 || wait4(pid, &status, 0, &ru) < 0) return 1;
    printf("{\"wall\": %.3f, \"cpu\": %.3f, \"peak\": %ld, \"exit\": %d}\n", now_ms() - from,
           ms(ru.ru_utime) + ms(ru.ru_stime), ru.ru_maxrss,
           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
