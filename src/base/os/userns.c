/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/userns.c - create a user namespace, and namespaces that belong to it
 *
 * How:   clone() with CLONE_VM: no memory is copied, however large the caller is. The process runs beside
 *        the calling thread and shares its thread-local memory, so it makes system calls without the C
 *        library. It keeps no descriptor but its end of a socket pair, and ends with EOF if the caller dies.
 */
#include "base/os/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/raw-call.h"
#include "base/str.h"

#define HOLDER_STACK (16 << 10)
#define OTHERS	     (CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC)

/* ThreadSanitizer intercepts clone() and treats it as fork(). It does not intercept this name. */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

/* In the new process. ThreadSanitizer takes it for a function of the calling thread. */
__attribute__((no_sanitize_thread)) static int hold(void *arg)
{
	char byte;

	if (raw_call3(__NR_dup3, *(int *)arg, 0, 0) < 0 ||
	    raw_call3(__NR_close_range, 1, ~0U, 0) < 0)
		return 1;
	raw_call3(__NR_read, 0, &byte, 1);
	return 0;
}

static int write_mapping(pid_t pid, const char *name, uint32_t host_id, uint32_t size,
			 struct hw_err *e)
{
	autofree char *path = str_printf("/proc/%d/%s", (int)pid, name);
	autofree char *text = str_printf("0 %" PRIu32 " %" PRIu32 "\n", host_id, size);

	return file_write_value(AT_FDCWD, path, text, e);
}

static int open_namespace(pid_t pid, const char *name, int *ret_fd, struct hw_err *e)
{
	autofree char *path = str_printf("/proc/%d/ns/%s", (int)pid, name);

	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_set(e, -errno, "open %s", path) : 0;
}

static int fill(pid_t pid, uint32_t host_id, uint32_t size, int others, struct userns *ns,
		struct hw_err *e)
{
	const struct {
		int flag;
		const char *name;
		int *fd;
	} all[] = {
		{ CLONE_NEWNET, "net", &ns->net },
		{ CLONE_NEWUTS, "uts", &ns->uts },
		{ CLONE_NEWIPC, "ipc", &ns->ipc },
	};
	int r;

	r = write_mapping(pid, "uid_map", host_id, size, e);
	if (r == 0)
		r = write_mapping(pid, "gid_map", host_id, size, e);
	if (r == 0)
		r = open_namespace(pid, "user", &ns->user, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(all); i++)
		if (others & all[i].flag)
			r = open_namespace(pid, all[i].name, all[i].fd, e);
	return r;
}

int userns_create(uint32_t host_id, uint32_t size, int others, struct userns *ret_ns,
		  struct hw_err *e)
{
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	_Alignas(16) char stack[HOLDER_STACK];
	int pair[2], r, error;
	sigset_t all, before;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "create a socket pair");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = __clone(hold, stack + sizeof(stack), CLONE_VM | CLONE_NEWUSER | (others & OTHERS),
		      &pair[1]);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	r = pid < 0 ? err_set(e, -error, "create a user namespace")
		    : fill(pid, host_id, size, others, &ns, e);
	if (pid > 0)
		kill(pid, SIGKILL);
	close(pair[0]);
	/* its stack is that of this function */
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	close(pair[1]);
	if (r < 0)
		return r;
	*ret_ns = ns;
	ns = (struct userns)USERNS_NONE;
	return 0;
}

void userns_done(struct userns *ns)
{
	mem_close_fd(&ns->user);
	mem_close_fd(&ns->net);
	mem_close_fd(&ns->uts);
	mem_close_fd(&ns->ipc);
}
