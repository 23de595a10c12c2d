// socket: a datagram that tells another process to look at the database. It carries nothing and may be lost;
// what is to be done stands in a row. Names are reached through the directory's descriptor, because the path
// of a state directory may be longer than the address of a socket.
#include "store/store_int.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const str suffix = S_INIT(".sock");

str run_socket_id(str name) {
    str id = str_sub(name, 0, STORE_ID_DIGITS);
    return name.n == STORE_ID_DIGITS + suffix.n && str_ends(name, suffix) && store_is_id(id) ? id : (str){0};
}

static struct sockaddr_un address_of(int run_dir, const char *run_id) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int n = snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s.sock", run_dir, run_id);
    static_assert(sizeof to.sun_path > sizeof "/proc/self/fd/-2147483648/" + RUN_SOCKET_NAME);
    (void)n;
    return to;
}

static int new_socket(void) {
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int run_socket_open(int run_dir, const char *run_id) {
    int fd = new_socket();
    if (fd < 0) return -1;
    struct sockaddr_un at = address_of(run_dir, run_id);
    // The mode that the name gets is that of the socket before it has one; the directory is private besides.
    if (fchmod(fd, 0600) == 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0) return fd;
    close(fd);
    return -1;
}

void run_socket_remove(int run_dir, const char *run_id) {
    char name[RUN_SOCKET_NAME];
    snprintf(name, sizeof name, "%s.sock", run_id);
    unlinkat(run_dir, name, 0);
}

void run_socket_poke(int run_dir, const char *run_id) {
    int fd = new_socket();
    if (fd < 0) return;
    struct sockaddr_un to = address_of(run_dir, run_id);
    // A queue that is full says the same already.
    sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
    close(fd);
}

void run_socket_drain(int fd) {
    char byte;
    while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno == EINTR) {}
}
