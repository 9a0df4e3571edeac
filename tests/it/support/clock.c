#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile int64_t *now_us;
__attribute__((constructor)) static void map(void) {
    const char *path = getenv("TEST_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *page = mmap(0, sizeof *now_us, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) now_us = page;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    (void)zone;
    if (!now_us) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); tv->tv_sec = t.tv_sec; tv->tv_usec = t.tv_nsec / 1000; return 0; }
    tv->tv_sec = *now_us / 1000000; tv->tv_usec = *now_us % 1000000;
    return 0;
}
