/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/call.c - a call, between the thread that serves it and the loop
 *
 * How:   the handler's functions change the queues under the call's lock and put
 *        the call on the ready list, under that list's; the loop takes calls from
 *        there. The last thing that a handler's thread does with a call is to put
 *        it there as done, in one step: afterwards the loop may free it.
 * Rules: the two locks are never held together. The handler of a unary call
 *        wakes the loop once, when it has ended: its answer waits for that.
 */
#include "rpc/call-internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define UNSENT_MAX (256 << 10) /* a sender waits while there is more */
#define LARGE	   (64 << 10)  /* a request that is worth telling the loop of, once it is taken */

/* ---- the loop's side ---------------------------------------------------------------- */

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/**
 * rpc_call_new() - a call that the loop holds
 * @calls:  what it shares with others
 * @method: who serves it
 * @ctx:    for the method
 */
struct rpc_call *rpc_call_new(struct rpc_calls *calls, const struct rpc_method *method, void *ctx)
{
	struct rpc_call *call = mem_new(sizeof(*call));

	call->calls = calls;
	call->method = method;
	call->ctx = ctx;
	call->refs = 1;
	call->over_fd = -1;
	call->began = time_now();
	call->deadline = TIME_NEVER;
	list_init(&call->ready_link);
	list_init(&call->in);
	list_init(&call->out);
	pthread_mutex_init(&call->lock, NULL);
	cond_init(&call->changed);
	return call;
}

static void drop_messages(struct list *list)
{
	list_for_each_safe(struct rpc_message, m, list, link) {
		list_remove(&m->link);
		buf_done(&m->body);
		free(m);
	}
}

/**
 * rpc_call_unref() - one holder less; the last one frees
 */
void rpc_call_unref(struct rpc_call *call)
{
	if (--call->refs > 0)
		return;
	drop_messages(&call->in);
	drop_messages(&call->out);
	mem_close_fd(&call->over_fd);
	pthread_cond_destroy(&call->changed);
	pthread_mutex_destroy(&call->lock);
	free(call->text);
	free(call);
}

static void append(struct list *list, struct buf *message)
{
	struct rpc_message *m = mem_new(sizeof(*m));

	m->body = *message;
	*message = (struct buf){ 0 };
	list_append(list, &m->link);
}

/**
 * rpc_call_push() - a message of the request
 */
void rpc_call_push(struct rpc_call *call, struct buf *message)
{
	pthread_mutex_lock(&call->lock);
	append(&call->in, message);
	call->n_in++;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

/**
 * rpc_call_push_end() - the request is whole
 */
void rpc_call_push_end(struct rpc_call *call)
{
	pthread_mutex_lock(&call->lock);
	call->in_end = true;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

/**
 * rpc_call_over() - nobody waits for the answer any more: tell the handler
 */
void rpc_call_over(struct rpc_call *call, enum status_code code)
{
	pthread_mutex_lock(&call->lock);
	call->over = true;
	call->over_code = code;
	if (call->over_fd >= 0)
		eventfd_write(call->over_fd, 1);
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

/**
 * rpc_call_sent() - the stream has nothing left to send
 */
void rpc_call_sent(struct rpc_call *call)
{
	pthread_mutex_lock(&call->lock);
	call->unsent = 0;
	list_for_each(struct rpc_message, m, &call->out, link)
		call->unsent += m->body.len;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

/**
 * rpc_call_collect() - what the handler has done since
 * @call:      the call
 * @ret_out:   an empty list: messages to send are moved there
 * @ret_taken: how many messages of the request were taken
 */
void rpc_call_collect(struct rpc_call *call, struct list *ret_out, unsigned *ret_taken)
{
	pthread_mutex_lock(&call->lock);
	list_for_each_safe(struct rpc_message, m, &call->out, link) {
		list_remove(&m->link);
		list_append(ret_out, &m->link);
	}
	*ret_taken = call->taken;
	call->taken = 0;
	pthread_mutex_unlock(&call->lock);
}

/* ---- the thread --------------------------------------------------------------------- */

/* After this with @done the call may be gone. */
static void tell_loop(struct rpc_call *call, bool done)
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

/* The handler's result; a call that was over before it began has none. */
static int serve(struct rpc_call *call, struct hw_err *e)
{
	int r;

	if (rpc_is_over(call))
		return status_set(e, call->over_code, "over before it began");
	r = call->method->handle(call, call->ctx, e);
	if (r >= 0 && call->n_out == 0 && !(call->method->flags & RPC_STREAM_OUT))
		return status_set(e, STATUS_INTERNAL, "%s has no answer", call->method->path);
	return r;
}

/**
 * rpc_call_serve() - run the handler, here and now
 */
void rpc_call_serve(struct rpc_call *call)
{
	struct hw_err e;

	if (serve(call, &e) < 0) {
		call->code = status_of(&e);
		call->text = str_copy(e.msg);
	}
	call->calls->ended(call->calls->ctx, call, call->code);
}

static void run(struct job *job)
{
	struct rpc_call *call = list_entry(job, struct rpc_call, job);

	rpc_call_serve(call);
	tell_loop(call, true);
}

/**
 * rpc_call_dispatch() - let the handler run
 *
 * Return: false: as many as may are running already
 */
bool rpc_call_dispatch(struct rpc_call *call)
{
	bool (*start)(struct workers *, struct job *) =
		call->method->flags & RPC_LONG ? workers_long : workers_short;
	bool taken;

	call->job.run = run;
	call->refs++;
	taken = start(call->calls->workers, &call->job);
	if (!taken)
		call->refs--;
	return taken;
}

/* ---- the handler's side ------------------------------------------------------------- */

static int over_error(const struct rpc_call *call, struct hw_err *e)
{
	return status_set(e, call->over_code, "the call is over: %s", status_name(call->over_code));
}

/* Wait for a change, with the lock held. */
static int wait_change(struct rpc_call *call, int64_t until, struct hw_err *e)
{
	struct timespec at = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };

	if (call->over)
		return over_error(call, e);
	if (pthread_cond_timedwait(&call->changed, &call->lock, &at) == ETIMEDOUT && !call->over)
		return status_set(e, STATUS_DEADLINE_EXCEEDED, "the client did not move for %d s",
				  call->calls->stall_ms / 1000);
	return 0;
}

static int wait_message(struct rpc_call *call, struct hw_err *e)
{
	int64_t until = time_deadline(call->calls->stall_ms);
	int r = 0;

	while (r == 0 && list_is_empty(&call->in) && !call->in_end)
		r = wait_change(call, until, e);
	return r < 0 ? r : !list_is_empty(&call->in);
}

/**
 * rpc_receive() - the next message of the request
 */
int rpc_receive(struct rpc_call *call, struct buf *ret, struct hw_err *e)
{
	bool streams = call->method->flags & RPC_STREAM_IN;
	bool instant = call->method->flags & RPC_INSTANT; /* the loop itself: it collects at once */
	struct rpc_message *m;
	int r;

	pthread_mutex_lock(&call->lock);
	r = wait_message(call, e);
	if (r == 1) {
		m = list_entry(call->in.next, struct rpc_message, link);
		list_remove(&m->link);
		call->taken++;
	}
	pthread_mutex_unlock(&call->lock);
	if (r != 1)
		return r;
	*ret = m->body;
	free(m);
	if (!instant && (streams || ret->len > LARGE))
		tell_loop(call, false);
	return 1;
}

static int wait_room(struct rpc_call *call, struct hw_err *e)
{
	int64_t until = time_deadline(call->calls->stall_ms);
	int r = 0;

	while (r == 0 && call->unsent > UNSENT_MAX)
		r = wait_change(call, until, e);
	if (r == 0 && call->over)
		r = over_error(call, e);
	return r;
}

static int too_long(size_t len, size_t max, struct hw_err *e)
{
	err_text(e, -EMSGSIZE, "an answer of %zu bytes is longer than the limit of %zu", len, max);
	return -EMSGSIZE;
}

/**
 * rpc_send() - a message of the answer
 */
int rpc_send(struct rpc_call *call, struct buf *message, struct hw_err *e)
{
	bool streams = call->method->flags & RPC_STREAM_OUT;
	int r;

	assert(streams || call->n_out == 0);
	if (message->len > call->calls->message_max) {
		r = too_long(message->len, call->calls->message_max, e);
		buf_done(message);
		return r;
	}
	pthread_mutex_lock(&call->lock);
	r = wait_room(call, e);
	if (r == 0) {
		call->n_out++;
		call->unsent += message->len;
		append(&call->out, message);
	}
	pthread_mutex_unlock(&call->lock);
	buf_done(message);
	if (r == 0 && streams)
		tell_loop(call, false);
	return r;
}

/**
 * rpc_is_over() - whether the work has become useless
 */
bool rpc_is_over(struct rpc_call *call)
{
	bool over;

	pthread_mutex_lock(&call->lock);
	over = call->over;
	pthread_mutex_unlock(&call->lock);
	return over;
}

/**
 * rpc_over_fd() - the same as a descriptor
 *
 * Return: -1: there are none left
 */
int rpc_over_fd(struct rpc_call *call)
{
	int fd;

	pthread_mutex_lock(&call->lock);
	if (call->over_fd < 0)
		call->over_fd = eventfd(call->over, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = call->over_fd;
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
