/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/serve-message.h - messages between a daemon and its `hawser-plugin serve`
 *
 * What:  serve is a helper of the daemon (base/os/helper.h) and runs plugins for it. On the helper's
 *        socket, serve sends one byte when it is ready; the daemon sends one byte for each call,
 *        with a socket of that call. On the call's socket (SOCK_SEQPACKET):
 *
 *	daemon                               process of the call
 *	request: plugin, environment,     ─►
 *	         standard input
 *	                                  ◄─ reply: status, standard output, standard error;
 *	                                            or the error why the plugin did not run
 *
 *        A message is a sequence of packets: a byte for the type, then a piece of the message.
 *        If the process of a call ends without a reply, serve sends its status in one packet of
 *        another type, so that nothing the process has sent can be mistaken for a part of it.
 * Rules: neither side trusts the other: sizes are checked before memory is allocated. The process
 *        starts the plugin only when it has read the whole request. So a daemon whose socket is
 *        reset (ECONNRESET, EPIPE while sending) knows that the plugin did not run.
 *        When the daemon shuts its socket down, the call is over, and everything that belongs to
 *        it is killed. The daemon gets EOF when all of these processes have ended.
 */
#ifndef CNI_SERVE_MESSAGE_H
#define CNI_SERVE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/os/proc.h"

#define SERVE_MESSAGE_MAX (2 * PROC_OUTPUT_MAX + (1 << 20))

struct serve_request {
	const char *plugin;	/* path of its file */
	const char *const *env; /* NULL at the end */
	const char *input;
	size_t input_len;
	bool stderr_through; /* the plugin inherits standard error; else it is collected */
};

struct serve_reply {
	int error;  /* negative errno: the plugin did not run, or was killed; @errors says why */
	int status; /* as waitpid() reports it */
	const char *output;
	size_t output_len;
	const char *errors;
	size_t errors_len;
};

/* Both append to @message. */
void serve_request_encode(const struct serve_request *request, struct buf *message);
void serve_reply_encode(const struct serve_reply *reply, struct buf *message);

/* Decode a complete message. The strings point into it; ret_request->env is freed with
 * serve_request_done(). Return: 0; -EBADMSG: malformed */
int serve_request_decode(const struct buf *message, struct serve_request *ret_request,
			 struct hw_err *e);
int serve_reply_decode(const struct buf *message, struct serve_reply *ret_reply, struct hw_err *e);
void serve_request_done(struct serve_request *request);

/* Sends the rest of a message, from *offset on, which is advanced. @flags as for send(). Return: 1 if
 * the message is complete; 0 if the socket is full (MSG_DONTWAIT); or a negative errno */
int serve_send(int fd, const struct buf *message, size_t *offset, int flags, struct hw_err *e);
/* Sends a reply for a process that has ended; see above. Never waits. */
int serve_send_died(int fd, const struct buf *message, struct hw_err *e);
/* Receives a packet of a message and appends it. @flags as for recv(). Return: 1 if the message is
 * complete; 0 if not; -EPIPE: EOF; -ECONNRESET: what we have sent was not read; -EBADMSG: malformed or
 * too large; or another negative errno */
int serve_receive(int fd, struct buf *message, int flags, struct hw_err *e);

AUTO_VALUE_DEFINE(serve_request_done, struct serve_request);

#endif
