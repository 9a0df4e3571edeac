#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* TEST_CLOCK: a server that asks by gettimeofday. TEST_WALL_CLOCK: one that asks by clock_gettime. */
static volatile int64_t *now_us, *wall_us;
static volatile int64_t *mapped(const char *variable) {
    const char *path = getenv(variable);
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return 0;
    void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    return page == MAP_FAILED ? 0 : page;
}
__attribute__((constructor)) static void map(void) {
    now_us = mapped("TEST_CLOCK");
    wall_us = mapped("TEST_WALL_CLOCK");
}
int clock_gettime(clockid_t clock, struct timespec *t) {
    if (clock != CLOCK_REALTIME || !wall_us) return syscall(SYS_clock_gettime, clock, t);
    t->tv_sec = *wall_us / 1000000; t->tv_nsec = *wall_us % 1000000 * 1000;
    return 0;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    (void)zone;
    if (!now_us) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); tv->tv_sec = t.tv_sec; tv->tv_usec = t.tv_nsec / 1000; return 0; }
    tv->tv_sec = *now_us / 1000000; tv->tv_usec = *now_us % 1000000;
    return 0;
}
