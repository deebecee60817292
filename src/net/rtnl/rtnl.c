/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rtnl.c - talk to the kernel's routing and link tables
 *
 * What:  a NETLINK_ROUTE socket, batches of requests, dumps.
 * How:   every request carries its own sequence number; an answer is matched
 *        to its request by it, and a late answer to an earlier batch is passed
 *        over. All answers of a query are kept until the last one is there, so
 *        a dump that the kernel interrupted can be asked again before anybody
 *        has seen half of it.
 *        NETLINK_EXT_ACK gives the kernel's own words for an error,
 *        NETLINK_CAP_ACK keeps our request out of the answer, and
 *        NETLINK_GET_STRICT_CHK makes the kernel filter dumps by the header
 *        and attributes of the request, instead of ignoring them.
 * Rules: only the kernel is believed: our socket may be in a pod, where whoever
 *        has CAP_NET_ADMIN can send to it.
 *        The kernel answers at once; a socket that stays silent for
 *        RTNL_PATIENCE_S seconds is an error, not a reason to hang.
 */
#include "net/rtnl/rtnl.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/buf.h"
#include "base/log.h"
#include "net/netns.h"
#include "net/sender.h"

#define RTNL_PATIENCE_S	 10
#define RTNL_SEND_MAX	 64    /* requests per send: their answers fit the receive buffer */
#define RTNL_RECEIVE_MAX 32768 /* the largest piece of a dump that the kernel makes */
#define RTNL_DUMP_TRIES	 6     /* as vishvananda/netlink: five more after the first */

struct request {
	uint32_t seq;
	size_t at; /* its place in rtnl.out */
	bool answered;
	char what[224]; /* "set link eth0 up": begins the error */
};

struct rtnl {
	struct mnl_socket *socket;
	uint32_t seq;
	struct buf out; /* requests that were put */
	struct request *requests;
	size_t n_requests, room;
	struct buf in;	  /* answers to them */
	bool interrupted; /* a dump among them is not of one moment */
};

static int rtnl_set_options(struct rtnl *nl, struct hw_err *e)
{
	static const int options[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK };
	struct timeval patience = { .tv_sec = RTNL_PATIENCE_S };
	int on = 1;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (mnl_socket_setsockopt(nl->socket, options[i], &on, sizeof(on)) < 0)
			return err_set(e, -errno, "set netlink option %d", options[i]);
	if (setsockopt(rtnl_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return err_set(e, -errno, "set netlink timeout");
	return 0;
}

static int rtnl_open_here(struct rtnl **ret_nl, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = mem_new(sizeof(*nl));
	int r;

	nl->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!nl->socket)
		return err_set(e, -errno, "open netlink socket");
	r = rtnl_set_options(nl, e);
	if (r < 0)
		return r;
	if (mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return err_set(e, -errno, "bind netlink socket");
	*ret_nl = take_ptr(nl);
	return 0;
}

/**
 * rtnl_open() - a socket in a network namespace
 * @netns_fd: where; -1 is where we are
 */
int rtnl_open(int netns_fd, struct rtnl **ret_nl, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	int r;

	if (netns_fd >= 0) {
		r = netns_enter(netns_fd, &home, e);
		if (r < 0)
			return r;
	}
	return rtnl_open_here(ret_nl, e);
}

/** rtnl_close() - what was put and not committed is dropped */
void rtnl_close(struct rtnl *nl)
{
	if (!nl)
		return;
	if (nl->socket)
		mnl_socket_close(nl->socket);
	buf_done(&nl->out);
	buf_done(&nl->in);
	free(nl->requests);
	free(nl);
}

/* The last request has all its attributes now: the next one goes behind it. */
static void rtnl_seal(struct rtnl *nl)
{
	const struct request *last;

	if (nl->n_requests == 0)
		return;
	last = &nl->requests[nl->n_requests - 1];
	nl->out.len = last->at;
	nl->out.len += MNL_ALIGN(((struct nlmsghdr *)(nl->out.data + last->at))->nlmsg_len);
}

static struct request *rtnl_new_request(struct rtnl *nl)
{
	if (nl->n_requests == nl->room) {
		nl->room = nl->room ? nl->room * 2 : 4;
		nl->requests = mem_resize(nl->requests, nl->room, sizeof(*nl->requests));
	}
	return &nl->requests[nl->n_requests++];
}

/** rtnl_fd() - the socket itself, for questions that have no message */
int rtnl_fd(const struct rtnl *nl)
{
	return mnl_socket_get_fd(nl->socket);
}

/**
 * rtnl_put() - start a request at the end of the batch
 * @type:  RTM_...
 * @flags: beyond NLM_F_REQUEST and NLM_F_ACK; with NLM_F_DUMP it must be alone
 * @head:  the family's header, such as struct ifinfomsg
 * @what:  what is being done, to what: the beginning of an error's text
 *
 * Return: the message, for up to RTNL_ATTRS_MAX bytes of attributes; valid
 *         until the next call with @nl
 */
struct nlmsghdr *rtnl_put(struct rtnl *nl, uint16_t type, uint16_t flags, const void *head,
			  size_t head_len, const char *what, ...)
{
	struct request *request;
	struct nlmsghdr *m;
	va_list ap;

	rtnl_seal(nl);
	request = rtnl_new_request(nl);
	*request = (struct request){ .seq = ++nl->seq, .at = nl->out.len };
	va_start(ap, what);
	vsnprintf(request->what, sizeof(request->what), what, ap);
	va_end(ap);

	m = mnl_nlmsg_put_header(
		buf_reserve(&nl->out, MNL_NLMSG_HDRLEN + MNL_ALIGN(head_len) + RTNL_ATTRS_MAX));
	m->nlmsg_type = type;
	m->nlmsg_flags = NLM_F_REQUEST | flags;
	if ((flags & NLM_F_DUMP) != NLM_F_DUMP)
		m->nlmsg_flags |= NLM_F_ACK;
	m->nlmsg_seq = request->seq;
	memcpy(mnl_nlmsg_put_extra_header(m, head_len), head, head_len);
	return m;
}

static struct request *rtnl_find_request(const struct rtnl *nl, const struct nlmsghdr *m)
{
	uint32_t i = m->nlmsg_seq - nl->requests[0].seq;

	if (m->nlmsg_pid != mnl_socket_get_portid(nl->socket) || i >= nl->n_requests)
		return NULL;
	return &nl->requests[i];
}

/* The kernel's words in an NLMSG_ERROR, or NULL. */
static const char *rtnl_find_text(const struct nlmsghdr *m)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(m);
	size_t at = sizeof(*error);
	const struct nlattr *attr;

	if (!(m->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	if (!(m->nlmsg_flags & NLM_F_CAPPED))
		at += mnl_nlmsg_get_payload_len(&error->msg);
	mnl_attr_for_each(attr, m, at)
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			return mnl_attr_get_str(attr);
	return NULL;
}

/* The errno that ends a request, 0 for success, or 1: this message does not end it. */
static int rtnl_verdict(const struct nlmsghdr *m)
{
	if (m->nlmsg_type != NLMSG_ERROR && m->nlmsg_type != NLMSG_DONE)
		return 1;
	if (mnl_nlmsg_get_payload_len(m) < sizeof(int))
		return m->nlmsg_type == NLMSG_DONE ? 0 : -EBADMSG;
	/* struct nlmsgerr begins with its error; a dump's end is that error alone */
	return *(const int *)mnl_nlmsg_get_payload(m);
}

static int rtnl_fail(const struct request *request, const struct nlmsghdr *m, int error,
		     struct hw_err *e)
{
	const char *text = m->nlmsg_type == NLMSG_ERROR ? rtnl_find_text(m) : NULL;

	if (text)
		return err_set(e, error, "%s: %s", request->what, text);
	return err_set(e, error, "%s", request->what);
}

/* One datagram of answers; counts the requests that it ended down in *left. */
static int rtnl_take(struct rtnl *nl, const char *data, int len, size_t *left, struct hw_err *e)
{
	const struct nlmsghdr *m = (const struct nlmsghdr *)data;
	int first = 0;

	for (; mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len)) {
		struct request *request = rtnl_find_request(nl, m);
		int verdict = rtnl_verdict(m);

		if (!request || request->answered)
			continue;
		if (m->nlmsg_flags & NLM_F_DUMP_INTR)
			nl->interrupted = true;
		if (verdict == 1)
			continue;
		request->answered = true;
		(*left)--;
		if (verdict < 0 && first == 0)
			first = rtnl_fail(request, m, verdict, e);
	}
	return first;
}

/* One datagram. Return: its length, 0 when it is not the kernel's, or a negative errno. */
static int rtnl_read(const struct rtnl *nl, char *data, size_t room)
{
	struct sockaddr_nl from = { 0 };
	struct iovec piece = { data, room };
	struct msghdr message = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &piece, .msg_iovlen = 1
	};
	ssize_t n = recvmsg(mnl_socket_get_fd(nl->socket), &message, 0);

	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (message.msg_namelen != sizeof(from) || from.nl_pid != 0)
		return 0;
	return message.msg_flags & MSG_TRUNC ? -EMSGSIZE : (int)n;
}

static int rtnl_receive(struct rtnl *nl, size_t left, struct hw_err *e)
{
	int first = 0;

	while (left > 0) {
		char *data = buf_reserve(&nl->in, RTNL_RECEIVE_MAX);
		int n = rtnl_read(nl, data, RTNL_RECEIVE_MAX);
		struct hw_err why;
		int r;

		if (n < 0)
			return err_set(e, n, "%s: receive the kernel's answer",
				       nl->requests[0].what);
		r = rtnl_take(nl, data, n, &left, &why);
		nl->in.len += MNL_ALIGN(n);
		if (r < 0 && first == 0) {
			first = r;
			*e = why;
		}
	}
	return first;
}

/* Send the requests from @first on, at most RTNL_SEND_MAX of them, and take their answers. */
static int rtnl_exchange(struct rtnl *nl, size_t first, struct hw_err *e)
{
	size_t n = nl->n_requests - first, from = nl->requests[first].at, to = nl->out.len;

	if (n > RTNL_SEND_MAX) {
		n = RTNL_SEND_MAX;
		to = nl->requests[first + n].at;
	}
	if (mnl_socket_sendto(nl->socket, nl->out.data + from, to - from) < 0)
		return err_set(e, -errno, "%s: send to the kernel", nl->requests[first].what);
	return rtnl_receive(nl, n, e);
}

/* Everything that was put, in portions; the first error counts. */
static int rtnl_run(struct rtnl *nl, struct hw_err *e)
{
	int first = 0;

	nl->in.len = 0;
	nl->interrupted = false;
	rtnl_seal(nl);
	for (size_t i = 0; i < nl->n_requests; i += RTNL_SEND_MAX) {
		struct hw_err why;
		int r = rtnl_exchange(nl, i, &why);

		if (r < 0 && first == 0) {
			first = r;
			*e = why;
		}
	}
	return first;
}

/* A dump must be of one moment: ask again when the kernel says that it is not. */
static int rtnl_run_until_whole(struct rtnl *nl, struct hw_err *e)
{
	int r;

	for (int tries = 1;; tries++) {
		r = rtnl_run(nl, e);
		if (r < 0 || !nl->interrupted)
			return r;
		assert(nl->n_requests == 1);
		if (tries == RTNL_DUMP_TRIES)
			break;
		nl->requests[0].answered = false;
	}
	log_debug("%s: the kernel's tables keep changing, the answer may have gaps",
		  nl->requests[0].what);
	return 0;
}

/** rtnl_drop() - empty the batch; answers that are still to come will be passed over */
void rtnl_drop(struct rtnl *nl)
{
	nl->n_requests = 0;
	nl->out.len = 0;
	nl->in.len = 0;
}

static int rtnl_each_answer(struct rtnl *nl,
			    int (*each)(void *ctx, const struct nlmsghdr *answer, struct hw_err *e),
			    void *ctx, struct hw_err *e)
{
	const struct nlmsghdr *m = (const struct nlmsghdr *)nl->in.data;
	int len = nl->in.len, r;

	for (; mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len)) {
		if (m->nlmsg_type < NLMSG_MIN_TYPE || !rtnl_find_request(nl, m))
			continue;
		r = each(ctx, m, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/**
 * rtnl_query() - send what was put and look at the answers
 * @each: called for each message that the kernel answered, once all are there;
 *        a negative return value ends the walk
 *
 * The batch is empty afterwards, whatever happened.
 *
 * Return: 0, what @each returned, or the error of the first request that failed
 */
int rtnl_query(struct rtnl *nl,
	       int (*each)(void *ctx, const struct nlmsghdr *answer, struct hw_err *e), void *ctx,
	       struct hw_err *e)
{
	int r = rtnl_run_until_whole(nl, e);

	if (r >= 0)
		r = rtnl_each_answer(nl, each, ctx, e);
	rtnl_drop(nl);
	return r;
}

static int rtnl_ignore(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	(void)ctx, (void)answer, (void)e;
	return 0;
}

/**
 * rtnl_commit() - send what was put and wait until all of it has been done
 *
 * The batch is empty afterwards, whatever happened.
 *
 * Return: 0, or the error of the first request that failed
 */
int rtnl_commit(struct rtnl *nl, struct hw_err *e)
{
	return rtnl_query(nl, rtnl_ignore, NULL, e);
}

/**
 * rtnl_start() - as rtnl_commit(), without waiting
 *
 * At most RTNL_SEND_MAX requests. The answers come to this socket; it may be
 * closed before that, the work is done all the same.
 *
 * Return: 0, or a negative errno: nothing was sent, and rtnl_commit() still can
 */
int rtnl_start(struct rtnl *nl)
{
	assert(nl->n_requests > 0 && nl->n_requests <= RTNL_SEND_MAX);
	rtnl_seal(nl);
	return sender_start(rtnl_fd(nl), nl->out.data, nl->out.len);
}

/**
 * rtnl_finish() - how did it go, what rtnl_start() started?
 * @wait_us: how long to wait for the first answer, in microseconds
 *
 * Return: 1: no answer yet, ask again; else as rtnl_commit()
 */
int rtnl_finish(struct rtnl *nl, int wait_us, struct hw_err *e)
{
	struct pollfd answer = { .fd = rtnl_fd(nl), .events = POLLIN };
	struct timespec wait = { .tv_nsec = wait_us * 1000L };
	int r;

	if (ppoll(&answer, 1, &wait, NULL) <= 0)
		return 1;
	r = rtnl_receive(nl, nl->n_requests, e);
	rtnl_drop(nl);
	return r;
}

/** rtnl_attr_number() - a number in our byte order, whatever its size */
uint32_t rtnl_attr_number(const struct nlattr *attr)
{
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return mnl_attr_get_u8(attr);
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	default:
		return 0;
	}
}

/** rtnl_attr_text() - a text, with or without its NUL */
void rtnl_attr_text(const struct nlattr *attr, char *ret, size_t size)
{
	snprintf(ret, size, "%.*s", (int)mnl_attr_get_payload_len(attr), mnl_attr_get_str(attr));
}
