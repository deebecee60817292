/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/call.c - a gRPC call on the server, between its handler's thread and the event loop
 *
 * How:   the functions for handlers change the queues under the call's lock, then put the call on
 *        the ready list under the list's lock. The loop takes calls from the ready list. A
 *        handler's last access to a call puts it on the list and marks it as done, in one step: the
 *        loop may free the call right afterwards.
 * Rules: the two locks are never held together. The handler of a unary call wakes the
 *        loop only once, when it has returned: its response is sent then.
 */
#include "rpc/call-internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"

#define UNSENT_MAX    (256 << 10) /* rpc_send() blocks while more bytes are unsent */
#define LARGE_REQUEST (64 << 10)  /* bytes; after a larger request the loop is notified at once */

/* ---- functions for the loop --------------------------------------------------------- */

struct rpc_call *rpc_call_new(struct rpc_calls *calls, const struct rpc_method *method, void *ctx)
{
	struct rpc_call *call = mem_new(sizeof(*call));

	call->calls = calls;
	call->method = method;
	call->ctx = ctx;
	call->refs = 1;
	call->cancel_fd = -1;
	call->started = time_now();
	call->deadline = TIME_NEVER;
	list_init(&call->ready_link);
	list_init(&call->endless_link);
	list_init(&call->in);
	list_init(&call->out);
	pthread_mutex_init(&call->lock, NULL);
	cond_init(&call->changed);
	return call;
}

static void free_messages(struct list *list)
{
	list_for_each_safe(struct rpc_message, m, list, link) {
		list_remove(&m->link);
		buf_done(&m->body);
		free(m);
	}
}

void rpc_call_unref(struct rpc_call *call)
{
	if (--call->refs > 0)
		return;
	free_messages(&call->in);
	free_messages(&call->out);
	mem_close_fd(&call->cancel_fd);
	pthread_cond_destroy(&call->changed);
	pthread_mutex_destroy(&call->lock);
	free(call->text);
	free(call);
}

static void append_message(struct list *list, struct buf *message)
{
	struct rpc_message *m = mem_new(sizeof(*m));

	m->body = *message;
	*message = (struct buf){ 0 };
	list_append(list, &m->link);
}

void rpc_call_add_message(struct rpc_call *call, struct buf *message)
{
	pthread_mutex_lock(&call->lock);
	append_message(&call->in, message);
	call->n_in++;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

void rpc_call_end_request(struct rpc_call *call)
{
	pthread_mutex_lock(&call->lock);
	call->in_end = true;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

void rpc_call_cancel(struct rpc_call *call, enum status_code code)
{
	pthread_mutex_lock(&call->lock);
	call->cancelled = true;
	call->cancel_code = code;
	if (call->cancel_fd >= 0)
		eventfd_write(call->cancel_fd, 1);
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

void rpc_call_stream_sent(struct rpc_call *call)
{
	pthread_mutex_lock(&call->lock);
	call->unsent = 0;
	list_for_each(struct rpc_message, m, &call->out, link)
		call->unsent += m->body.len;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

void rpc_call_take_output(struct rpc_call *call, struct list *out, unsigned *ret_consumed)
{
	pthread_mutex_lock(&call->lock);
	list_for_each_safe(struct rpc_message, m, &call->out, link) {
		list_remove(&m->link);
		list_append(out, &m->link);
	}
	*ret_consumed = call->consumed;
	call->consumed = 0;
	pthread_mutex_unlock(&call->lock);
}

/* ---- the handler's thread ----------------------------------------------------------- */

/* If @done is set, the loop may free the call before this function returns. */
static void notify_loop(struct rpc_call *call, bool done)
{
	struct rpc_calls *calls = call->calls;
	bool wake;

	pthread_mutex_lock(&calls->lock);
	call->is_done = done;
	wake = !call->is_ready;
	if (wake) {
		call->is_ready = true;
		list_append(&calls->ready, &call->ready_link);
	}
	pthread_mutex_unlock(&calls->lock);
	if (wake)
		calls->wake(calls->ctx);
}

void rpc_call_run(struct rpc_call *call)
{
	struct hw_err e;
	int r;

	if (rpc_is_cancelled(call))
		r = status_set(&e, call->cancel_code, "call cancelled before it started");
	else
		r = call->method->handle(call, call->ctx, &e);
	if (r >= 0 && call->n_out == 0 && !(call->method->flags & RPC_STREAM_OUT))
		r = status_set(&e, STATUS_INTERNAL, "%s: handler sent no response",
			       call->method->path);
	if (r < 0) {
		call->code = status_from_err(&e);
		call->text = str_copy(e.msg);
	}
	call->calls->finished(call->calls->ctx, call, call->code);
}

static void run_job(struct worker_job *job)
{
	struct rpc_call *call = list_entry(job, struct rpc_call, job);

	rpc_call_run(call);
	notify_loop(call, true);
}

int rpc_call_dispatch(struct rpc_call *call, struct hw_err *e)
{
	struct workers *workers = call->calls->workers;
	int r;

	call->job.run = run_job;
	call->refs++;
	r = call->method->flags & RPC_LONG ? workers_run_long(workers, &call->job, e)
					   : workers_run_short(workers, &call->job, e);
	if (r < 0)
		call->refs--;
	return r;
}

/* ---- functions for the handler ------------------------------------------------------ */

static int cancelled_error(const struct rpc_call *call, struct hw_err *e)
{
	return status_set(e, call->cancel_code, "call cancelled: %s",
			  status_name(call->cancel_code));
}

/* Waits for a change, with the lock held. */
static int wait_change(struct rpc_call *call, int64_t until, struct hw_err *e)
{
	if (call->cancelled)
		return cancelled_error(call, e);
	if (!cond_wait_until(&call->changed, &call->lock, until) && !call->cancelled)
		return status_set(e, STATUS_DEADLINE_EXCEEDED, "client stalled for %d s",
				  call->calls->stall_ms / 1000);
	return 0;
}

int rpc_receive(struct rpc_call *call, struct buf *ret, struct hw_err *e)
{
	int64_t until = time_deadline(call->calls->stall_ms);
	unsigned flags = call->method->flags;
	struct rpc_message *m = NULL;
	int r = 0;

	pthread_mutex_lock(&call->lock);
	while (r == 0 && list_is_empty(&call->in) && !call->in_end)
		r = wait_change(call, until, e);
	if (r == 0 && !list_is_empty(&call->in)) {
		m = list_entry(call->in.next, struct rpc_message, link);
		list_remove(&m->link);
		call->consumed++;
	}
	pthread_mutex_unlock(&call->lock);
	if (!m)
		return r;
	*ret = m->body;
	free(m);
	/* an instant call runs on the loop, which processes the call right after the handler
	 * returns */
	if (!(flags & RPC_INSTANT) && (flags & RPC_STREAM_IN || ret->len > LARGE_REQUEST))
		notify_loop(call, false);
	return 1;
}

int rpc_send(struct rpc_call *call, struct buf *message, struct hw_err *e)
{
	int64_t until = time_deadline(call->calls->stall_ms);
	bool streams = call->method->flags & RPC_STREAM_OUT;
	size_t max = call->calls->message_max;
	int r = 0;

	assert(streams || call->n_out == 0);
	if (message->len > max) {
		err_text(e, -EMSGSIZE, "response too large: %zu bytes, limit %zu", message->len,
			 max);
		buf_done(message);
		return -EMSGSIZE;
	}
	pthread_mutex_lock(&call->lock);
	while (r == 0 && call->unsent > UNSENT_MAX)
		r = wait_change(call, until, e);
	if (r == 0 && call->cancelled)
		r = cancelled_error(call, e);
	if (r == 0) {
		call->n_out++;
		call->unsent += message->len;
		append_message(&call->out, message);
	}
	pthread_mutex_unlock(&call->lock);
	buf_done(message);
	if (r == 0 && streams)
		notify_loop(call, false);
	return r;
}

bool rpc_is_cancelled(struct rpc_call *call)
{
	bool cancelled;

	pthread_mutex_lock(&call->lock);
	cancelled = call->cancelled;
	pthread_mutex_unlock(&call->lock);
	return cancelled;
}

int rpc_cancel_fd(struct rpc_call *call)
{
	int fd;

	pthread_mutex_lock(&call->lock);
	if (call->cancel_fd < 0)
		call->cancel_fd = eventfd(call->cancelled, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = call->cancel_fd;
	pthread_mutex_unlock(&call->lock);
	return fd;
}

int64_t rpc_deadline(const struct rpc_call *call)
{
	return call->deadline;
}

uint64_t rpc_id(const struct rpc_call *call)
{
	return call->id;
}

const struct rpc_method *rpc_method(const struct rpc_call *call)
{
	return call->method;
}
