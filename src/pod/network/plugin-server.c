/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/plugin-server.c - run CNI plugins through `hawser-plugin serve`
 *
 * How:   each call has its own socket pair, and the thread of the caller does all I/O on it
 *        (cni/serve-message.h has the protocol):
 *
 *	event on the call's socket		result
 *	reply					0 and its status, or its error
 *	EOF, the request was not read		start again with another process
 *	EOF, the request was read		-EIO: the process of the call was killed
 *	the deadline passes			shut down, wait for EOF; -ETIMEDOUT
 *	cancel_fd is readable			shut down, wait for EOF; -ECANCELED
 *
 *        EOF says that all processes of the call have ended. It is not waited for if the request
 *        was not read: then the process will find the shutdown before it starts the plugin.
 */
#include "pod/network/plugin-server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/histogram.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/os/environment.h"
#include "base/os/file.h"
#include "base/os/helper.h"
#include "base/os/pass-fd.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/runtime/exec.h"
#include "cni/serve-message.h"

#define PROGRAM	     "hawser-plugin"
#define START_MS     10000 /* timeout for serve to become ready */
#define RETRY_MS     5000  /* until a program that did not become ready is started again */
#define TRIES	     3	   /* attempts of a call that does not start */
#define LOCK_STEP_MS 10	   /* between checks whether the call was cancelled */
#define COUNTERS_MAX 256   /* plugins and commands that are counted by name */

/* The variables that plugins get. They must not get others, such as credentials of
 * registries. */
static const char *const plugin_variables[] = {
	"CNI_*",
	"PATH",
	"HOME",
	"LANG",
	"TMPDIR",
	"TZ",
	"DBUS_SYSTEM_BUS_ADDRESS", /* for firewalld */
	ENVIRONMENT_SERVERS,
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	/* Calico's plugin takes its settings from there, as far as its configuration has none */
	"DATASTORE_TYPE",
	"ETCD_*",
	"K8S_*",
	"KUBECONFIG",
	"KUBERNETES_*",
};

/* A file on disk, whatever its path is by now. */
struct file_id {
	dev_t dev;
	ino_t ino;
};

/* A running serve. */
struct process {
	unsigned refs;
	struct helper *helper;
	struct file_id file; /* that its path led to when it was started */
	bool ended;	     /* its socket is closed */
};

struct counters {
	struct histogram seconds;
	uint64_t failed;
};

struct plugin_server {
	struct hw_exec exec;
	struct hw_strings dirs;
	char *program;
	char *state_env;					 /* HAWSER_STATE=... */
	const char *variables[ARRAY_SIZE(plugin_variables) + 2]; /* with state_env and NULL */
	char *lock_path;

	pthread_mutex_t lock; /* held while a process starts */
	int lock_fd;	      /* -1 until this process has the lock */
	struct process *process;
	struct file_id unusable; /* a program that did not become ready */
	struct hw_err reason;	 /* why it did not */
	int64_t retry_at;	 /* when it is started again */

	pthread_mutex_t counters_lock; /* held for a few instructions: metrics must not wait */
	struct map *counters;	       /* maps plugin="x",command="y" to struct counters */
};

static bool same_file(struct file_id a, struct file_id b)
{
	return a.dev == b.dev && a.ino == b.ino;
}

/* ---- the lock ---------------------------------------------------------------------- */

/* Return: 1 if this process has the lock; 0 if another one has it; or a negative errno */
static int try_lock(struct plugin_server *s, struct hw_err *e)
{
	int r = 1;

	pthread_mutex_lock(&s->lock);
	if (s->lock_fd < 0) {
		r = file_lock(AT_FDCWD, s->lock_path, true, time_now(), &s->lock_fd, e);
		r = r == -ETIMEDOUT ? 0 : r < 0 ? r : 1;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int wait_for_lock(struct plugin_server *s, int cancel_fd, int64_t deadline, struct hw_err *e)
{
	struct pollfd cancel = { .fd = cancel_fd, .events = POLLIN };
	int r;

	for (;;) {
		r = try_lock(s, e);
		if (r != 0)
			return r < 0 ? r : 0;
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT,
					"plugins of an earlier daemon are still running: %s is "
					"locked",
					s->lock_path);
		if (poll(&cancel, 1, LOCK_STEP_MS) > 0)
			return err_text(e, -ECANCELED, "cancelled");
	}
}

int plugin_server_wait(struct plugin_server *s, int64_t deadline, struct hw_err *e)
{
	return wait_for_lock(s, -1, deadline, e);
}

/* ---- processes --------------------------------------------------------------------- */

/* The functions of this section are called with the lock held. */

static void process_unref(struct process *p)
{
	if (!p || --p->refs > 0)
		return;
	helper_free(p->helper);
	free(p);
}

static bool find_file(const char *path, struct file_id *ret_file)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		return false;
	*ret_file = (struct file_id){ st.st_dev, st.st_ino };
	return true;
}

/* Return: the path of the program, allocated; NULL if it is missing */
static char *find_program(const struct plugin_server *s, struct file_id *ret_file)
{
	for (size_t i = 0; i < s->dirs.n; i++) {
		autofree char *path = str_printf("%s/%s", s->dirs.v[i], PROGRAM);

		if (*s->dirs.v[i] && find_file(path, ret_file))
			return take_ptr(path);
	}
	return find_file(s->program, ret_file) ? str_copy(s->program) : NULL;
}

static int wait_until_ready(struct helper *h, struct hw_err *e)
{
	char byte;
	int r;

	r = helper_wait(h, helper_socket(h), -1, time_deadline(START_MS), e);
	if (r == 0 && recv(helper_socket(h), &byte, 1, MSG_DONTWAIT) != 1)
		r = helper_exit_error(h, PROGRAM " serve", e);
	return r;
}

static int process_start(const struct plugin_server *s, const char *path, struct process **ret,
			 struct hw_err *e)
{
	const char *const argv[] = { path, "serve", NULL };
	const struct helper_start start = { .argv = argv, .keep = &s->lock_fd, .n_keep = 1 };
	AUTO(helper_free) struct helper *h = NULL;
	int r;

	r = helper_start(&start, &h, e);
	if (r == 0)
		r = wait_until_ready(h, e);
	if (r < 0)
		return r;
	*ret = mem_new(sizeof(**ret));
	(*ret)->refs = 1;
	(*ret)->helper = take_ptr(h);
	return 0;
}

/* Error: a plugin that this process executed would not hold the lock, and would outlive this process. The CNI
 * code says that the call can be repeated. */
static int refuse_call(const struct plugin_server *s, struct hw_err *e)
{
	return err_cni(e, HW_CNI_TRY_AGAIN,
		       PROGRAM " serve did not become ready, and plugins run only there: %s; it is "
			       "started again after %d s",
		       s->reason.msg, RETRY_MS / 1000);
}

/* Makes sure that s->process can be used. */
static int update_process(struct plugin_server *s, struct hw_err *e)
{
	struct file_id file = { 0 };
	autofree char *path = find_program(s, &file);

	if (s->process && path && same_file(s->process->file, file) && !s->process->ended &&
	    helper_is_running(s->process->helper))
		return 0;
	process_unref(take_ptr(s->process));
	if (!path)
		return err_cni(e, HW_CNI_TRY_AGAIN,
			       PROGRAM ", which runs all plugins, is missing: it is neither in a "
				       "plugin directory nor at %s",
			       s->program);
	if (same_file(file, s->unusable) && !time_has_passed(s->retry_at))
		return refuse_call(s, e);
	if (process_start(s, path, &s->process, &s->reason) == 0) {
		s->process->file = file;
		s->unusable = (struct file_id){ 0 };
		return 0;
	}
	if (!same_file(file, s->unusable))
		log_event(LOG_ERROR, "plugins cannot be run", "program", path, "reason",
			  s->reason.msg, NULL);
	s->unusable = file;
	s->retry_at = time_deadline(RETRY_MS);
	return refuse_call(s, e);
}

/* ---- a call ------------------------------------------------------------------------ */

struct call {
	int cancel_fd;
	int64_t deadline;
	int socket;
	struct buf request, reply;
	size_t sent; /* of the request */
};

static void call_done(struct call *c)
{
	mem_close_fd(&c->socket);
	buf_done(&c->request);
	buf_done(&c->reply);
}
AUTO_VALUE_DEFINE(call_done, struct call);

/* Return: the events of the descriptor, positive; -ECANCELED; -ETIMEDOUT; or another negative
 * errno */
static int wait_for_events(const struct call *c, int fd, short events, struct hw_err *e)
{
	struct pollfd fds[] = { { .fd = fd, .events = events },
				{ .fd = c->cancel_fd, .events = POLLIN } };

	for (;;) {
		int n;

		n = poll(fds, ARRAY_SIZE(fds), time_left_ms(c->deadline));
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for a plugin");
		if (n > 0 && fds[1].revents)
			return -ECANCELED;
		if (n > 0 && fds[0].revents)
			return fds[0].revents;
		if (time_has_passed(c->deadline))
			return -ETIMEDOUT;
	}
}

/* Ends the call, and waits until all its processes have ended. */
static void end_call(const struct call *c)
{
	struct pollfd poller = { .fd = c->socket, .events = POLLIN };
	int unread = 0;
	char byte;

	shutdown(c->socket, SHUT_WR);
	if (ioctl(c->socket, SIOCOUTQ, &unread) == 0 && unread > 0)
		return;
	for (;;) {
		ssize_t n;

		n = recv(c->socket, &byte, 1, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return;
		if (n < 0)
			poll(&poller, 1, -1);
	}
}

/* Sends the other end of the call's socket to serve. Return: 0; 1: serve has ended; or a negative
 * errno */
static int send_socket(const struct call *c, int serve, int other, struct hw_err *e)
{
	struct iovec byte = { (char[]){ 'c' }, 1 };
	int r;

	while (pass_fd_send(serve, &byte, 1, other, MSG_DONTWAIT) < 0) {
		if (errno == EPIPE || errno == ECONNRESET)
			return 1;
		if (errno != EAGAIN && errno != EINTR)
			return err_set(e, -errno, "send to " PROGRAM " serve");
		r = wait_for_events(c, serve, POLLOUT, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Sends and receives what is possible now. Return: 1 if the reply is complete; 0 if not; or a
 * negative errno, -ECONNRESET if the request was not read */
static int transfer(struct call *c, short events, struct hw_err *e)
{
	int r = 1;

	if (c->sent < c->request.len && (events & POLLOUT))
		r = serve_send(c->socket, &c->request, &c->sent, MSG_DONTWAIT, e);
	if (r < 0)
		return r == -EPIPE ? -ECONNRESET : r;
	if (!(events & (POLLIN | POLLHUP | POLLERR)))
		return 0;
	r = serve_receive(c->socket, &c->reply, MSG_DONTWAIT, e);
	if (r == -ECONNRESET) { /* the kernel reports it before what was sent to us */
		r = serve_receive(c->socket, &c->reply, MSG_DONTWAIT, e);
		return r == -EPIPE ? -ECONNRESET : r;
	}
	return r == -EPIPE && c->sent < c->request.len ? -ECONNRESET : r;
}

static char *copy_bytes(const char *data, size_t len)
{
	struct buf b = { 0 };

	buf_add(&b, data, len);
	return buf_take(&b);
}

static int use_reply(const struct call *c, bool stderr_through, struct hw_ran *ret_ran,
		     struct hw_err *e)
{
	struct serve_reply reply;
	int r;

	r = serve_reply_decode(&c->reply, &reply, e);
	if (r < 0)
		return r;
	if (reply.error < 0) {
		end_call(c);
		return err_text(e, reply.error, "%.*s", (int)reply.errors_len, reply.errors);
	}
	ret_ran->status = reply.status;
	ret_ran->output = copy_bytes(reply.output, reply.output_len);
	ret_ran->output_len = reply.output_len;
	ret_ran->errors = NULL;
	ret_ran->errors_len = 0;
	if (!stderr_through) {
		ret_ran->errors = copy_bytes(reply.errors, reply.errors_len);
		ret_ran->errors_len = reply.errors_len;
	}
	return 0;
}

/* Return: 0; 1 if the plugin was not started, because the process for it has ended; or a negative
 * errno */
static int run_call(struct call *c, struct process *p, const struct hw_run *run,
		    struct hw_ran *ret_ran, struct hw_err *e)
{
	int64_t started = time_now();
	autoclose int other = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "create a socket pair");
	c->socket = pair[0];
	other = pair[1];
	r = serve_send(c->socket, &c->request, &c->sent, MSG_DONTWAIT, e);
	if (r < 0)
		return r;
	r = send_socket(c, helper_socket(p->helper), other, e);
	if (r != 0)
		return r > 0 ? r : exec_run_error(r, started, e);
	mem_close_fd(&other);
	other = -1;
	while (r == 0) {
		r = wait_for_events(c, c->socket, POLLIN | (c->sent < c->request.len ? POLLOUT : 0),
				    e);
		if (r == -ECANCELED || r == -ETIMEDOUT)
			end_call(c);
		if (r < 0)
			return exec_run_error(r, started, e);
		r = transfer(c, (short)r, e);
	}
	if (r == -ECONNRESET)
		return 1;
	if (r == -EPIPE)
		return err_text(e, -EIO,
				"netplugin failed with no error message: its process was killed");
	if (r >= 0)
		r = use_reply(c, run->stderr_through, ret_ran, e);
	if (r == -EBADMSG) {
		end_call(c);
		return err_ctx(e, PROGRAM " serve: protocol error");
	}
	return r;
}

/* ---- counting ---------------------------------------------------------------------- */

static const char *find_variable(const char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

/* Appends name="value". */
static void put_label(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, "%s%s=\"", b->len ? "," : "", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_putc(b, '\\');
		if (*value == '\n')
			buf_puts(b, "\\n");
		else
			buf_putc(b, *value);
	}
	buf_putc(b, '"');
}

static void count_call(struct plugin_server *s, const struct hw_run *run, bool failed, int64_t ns)
{
	AUTO(buf_done) struct buf labels = { 0 };
	struct counters *c;

	put_label(&labels, "plugin", basename(run->plugin));
	put_label(&labels, "command", str_or(find_variable(run->env, "CNI_COMMAND"), ""));
	pthread_mutex_lock(&s->counters_lock);
	c = map_find(s->counters, labels.data);
	if (!c && map_count(s->counters) == COUNTERS_MAX) {
		buf_done(&labels);
		labels = (struct buf){ 0 };
		put_label(&labels, "plugin", "other");
		put_label(&labels, "command", "other");
		c = map_find(s->counters, labels.data);
	}
	if (!c) {
		c = mem_new(sizeof(*c));
		map_set(s->counters, labels.data, c);
	}
	histogram_add(&c->seconds, ns);
	c->failed += failed;
	pthread_mutex_unlock(&s->counters_lock);
}

void plugin_server_format_metrics(struct plugin_server *s, struct buf *b)
{
	static const char seconds[] = "hawser_plugin_call_seconds";
	static const char failed[] = "hawser_plugin_calls_failed_total";
	const char *labels;
	void *found;

	pthread_mutex_lock(&s->counters_lock);
	buf_printf(b, "# HELP %s Duration of calls of CNI plugins.\n# TYPE %s histogram\n", seconds,
		   seconds);
	for (size_t i = 0; map_next(s->counters, &i, &labels, &found);)
		histogram_format(&((struct counters *)found)->seconds, seconds, labels, b);
	buf_printf(b, "# HELP %s Failed calls of CNI plugins.\n# TYPE %s counter\n", failed,
		   failed);
	for (size_t i = 0; map_next(s->counters, &i, &labels, &found);)
		buf_printf(b, "%s{%s} %" PRIu64 "\n", failed, labels,
			   ((struct counters *)found)->failed);
	pthread_mutex_unlock(&s->counters_lock);
}

/* ---- struct hw_exec ---------------------------------------------------------------- */

/* *ret_process is to be released. */
static int get_process(struct plugin_server *s, struct process **ret_process, struct hw_err *e)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = update_process(s, e);
	if (r == 0) {
		s->process->refs++;
		*ret_process = s->process;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void release_process(struct plugin_server *s, struct process *p, bool ended)
{
	pthread_mutex_lock(&s->lock);
	p->ended |= ended;
	process_unref(p);
	pthread_mutex_unlock(&s->lock);
}

static int run_plugin(struct plugin_server *s, const struct hw_run *run, struct hw_ran *ret_ran,
		      struct hw_err *e)
{
	struct serve_request request = { run->plugin, run->env, run->input, run->input_len,
					 run->stderr_through };

	for (int i = 0; i < TRIES; i++) {
		AUTO(call_done)
		struct call c = {
			.cancel_fd = run->cancel_fd > 0 ? run->cancel_fd : -1,
			.deadline = run->deadline_ns ? run->deadline_ns : TIME_NEVER,
			.socket = -1,
		};
		struct process *p = NULL;
		int r;

		serve_request_encode(&request, &c.request);
		if (c.request.len > SERVE_MESSAGE_MAX)
			return err_text(e, -E2BIG, "input exceeds %d MiB", SERVE_MESSAGE_MAX >> 20);
		r = get_process(s, &p, e);
		if (r < 0)
			return r;
		r = run_call(&c, p, run, ret_ran, e);
		release_process(s, p, r > 0);
		if (r <= 0)
			return r;
	}
	return err_text(e, -EIO, "%s: " PROGRAM " serve was killed %d times", run->plugin, TRIES);
}

static int server_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e)
{
	struct plugin_server *s = ctx;
	autofree const char **env = environment_select(run->env, s->variables);
	int64_t started = time_now();
	struct hw_run selected = *run;
	int r;

	selected.env = env;
	r = wait_for_lock(s, run->cancel_fd > 0 ? run->cancel_fd : -1,
			  run->deadline_ns ? run->deadline_ns : TIME_NEVER, e);
	if (r == 0)
		r = run_plugin(s, &selected, ret_ran, e);
	count_call(s, &selected, r < 0 || ret_ran->status != 0, time_now() - started);
	return r;
}

const struct hw_exec *plugin_server_exec(const struct plugin_server *s)
{
	return &s->exec;
}

struct plugin_server *plugin_server_new(const struct plugin_server_options *o)
{
	struct plugin_server *s = mem_new(sizeof(*s));

	s->exec = (struct hw_exec){ .size = sizeof(s->exec), .ctx = s, .run = server_run };
	strings_split(o->plugin_dirs, ':', &s->dirs);
	s->program = str_copy(o->program);
	s->state_env = str_printf("HAWSER_STATE=%s", o->state_dir);
	memcpy(s->variables, plugin_variables, sizeof(plugin_variables));
	s->variables[ARRAY_SIZE(plugin_variables)] = s->state_env;
	s->lock_path = str_printf("%s/plugins.lock", o->state_dir);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->counters_lock, NULL);
	s->lock_fd = -1;
	s->counters = map_new(free);
	return s;
}

void plugin_server_free(struct plugin_server *s)
{
	if (!s)
		return;
	process_unref(s->process);
	mem_close_fd(&s->lock_fd);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->counters_lock);
	map_free(s->counters);
	hw_strings_free(&s->dirs);
	free(s->program);
	free(s->state_env);
	free(s->lock_path);
	free(s);
}
