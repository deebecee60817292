/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/thread.h - start threads; condition variables with deadlines
 */
#ifndef BASE_OS_THREAD_H
#define BASE_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct hw_err;

/*
 * Highest use, measured on x86-64 with a fill pattern in an optimized build, in the tests of pulls, loads
 * and the daemon: 28 KiB in threads for calls, 18 KiB in those for pulls, 29 KiB in those of the fetcher
 * (a layer over TLS; 24 KiB without), 40 KiB in that of base/os/child.c, of which 32 KiB are the watcher's
 * stack. Not measured: the fetcher that reads an archive, which decompresses but has no TLS. The rest is
 * for instrumented builds and other versions of the libraries.
 * NSS modules may need any amount. Debian's libcurl calls getaddrinfo() on a thread of its own with a
 * stack of the default size (8 MiB), as strace shows; a libcurl without AsynchDNS would call it here.
 */
#define THREAD_STACK (256 << 10)

/*
 * Starts a thread with a stack of THREAD_STACK bytes in which all signals are blocked: the main
 * thread handles them. @ret_thread must be joined; NULL starts a detached thread.
 *
 * Return: 0, or a negative errno
 */
int thread_start(void *(*entry)(void *arg), void *arg, pthread_t *ret_thread, struct hw_err *e);

/* A condition variable for cond_wait_until(), to be released with pthread_cond_destroy(). */
void cond_init(pthread_cond_t *cond);
/* Waits until the condition is signalled; may also return early. The caller holds @lock.
 * @deadline: see base/time.h. Return: false if the deadline has passed */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline);

#endif
