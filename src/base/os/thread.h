/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/thread.h - start threads
 */
#ifndef BASE_OS_THREAD_H
#define BASE_OS_THREAD_H

#include <pthread.h>

struct hw_err;

#define THREAD_STACK (256 << 10) /* enough for deep calls with several struct hw_err */

/*
 * Starts a thread with a stack of THREAD_STACK bytes in which all signals are blocked: the main
 * thread handles them. @ret_thread must be joined; NULL starts a detached thread.
 *
 * Return: 0, or a negative errno
 */
int thread_start(void *(*entry)(void *arg), void *arg, pthread_t *ret_thread, struct hw_err *e);

#endif
