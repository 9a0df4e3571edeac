/* Names of a sender's hosts lead to this machine, and their port 443 to the one in TEST_HTTPS_PORT:
   for a process of its own that is to fetch from a real server that a test runs. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && (strstr(node, ".amazonaws.com") || strstr(node, ".paypal.com"))) node = "127.0.0.1";
    return real(node, service, hints, found);
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    const char *port = getenv("TEST_HTTPS_PORT");
    if (port && address->sa_family == AF_INET) {
        struct sockaddr_in own = *(const struct sockaddr_in *)address;
        if (ntohs(own.sin_port) == 443 && ntohl(own.sin_addr.s_addr) == INADDR_LOOPBACK) {
            own.sin_port = htons((unsigned short)atoi(port));
            return real(socket, (const struct sockaddr *)&own, sizeof own);
        }
    }
    return real(socket, address, length);
}
