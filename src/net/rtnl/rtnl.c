/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rtnl.c - rtnetlink: a socket, batches of requests, dumps
 *
 * How:   every request has its own sequence number, by which a reply is assigned to
 *        its request; late replies to an earlier batch are ignored. All replies to a
 *        query are received before the first one is processed. So a dump that the
 *        kernel reports as interrupted can be repeated before the caller has seen a
 *        part of it.
 *        NETLINK_EXT_ACK adds the kernel's own error text to a reply.
 *        NETLINK_CAP_ACK: an error reply does not contain a copy of the request.
 *        NETLINK_GET_STRICT_CHK: the kernel filters a dump by the header and the
 *        attributes of the request instead of ignoring them.
 * Rules: only messages from the kernel are accepted: in a pod's namespace every
 *        process with CAP_NET_ADMIN can send to this socket.
 *        The kernel replies at once; if there is no reply for RTNL_TIMEOUT_S seconds,
 *        the request fails.
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

#define RTNL_TIMEOUT_S	 10
#define RTNL_SEND_MAX	 64    /* requests per send(); all their replies fit the receive buffer */
#define RTNL_RECEIVE_MAX 32768 /* the largest part of a dump that the kernel sends */
#define RTNL_DUMP_TRIES	 6     /* one try and five retries, like vishvananda/netlink */

struct rtnl_request {
	uint32_t seq;
	size_t offset; /* offset of the request in rtnl.out */
	bool answered;
	char what[224]; /* beginning of the error text, such as "set interface eth0 up" */
};

struct rtnl {
	struct mnl_socket *socket;
	uint32_t seq;
	struct buf out; /* the batch */
	struct rtnl_request *requests;
	size_t n_requests, room;
	struct buf in;	  /* the replies */
	bool interrupted; /* the kernel reported that a dump is inconsistent */
};

int rtnl_open(int netns_fd, struct rtnl **ret_nl, struct hw_err *e)
{
	static const int options[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK };
	struct timeval timeout = { .tv_sec = RTNL_TIMEOUT_S };
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	int on = 1, r;

	if (netns_fd >= 0) {
		r = netns_enter(netns_fd, &home, e);
		if (r < 0)
			return r;
	}
	nl = mem_new(sizeof(*nl));
	nl->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!nl->socket)
		return err_set(e, -errno, "open netlink socket");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (mnl_socket_setsockopt(nl->socket, options[i], &on, sizeof(on)) < 0)
			return err_set(e, -errno, "set netlink option %d", options[i]);
	if (setsockopt(rtnl_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		return err_set(e, -errno, "set netlink timeout");
	if (mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return err_set(e, -errno, "bind netlink socket");
	*ret_nl = take_ptr(nl);
	return 0;
}

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

/* Completes the last request: includes its attributes in the length of the batch. */
static void rtnl_end_request(struct rtnl *nl)
{
	const struct rtnl_request *last;

	if (nl->n_requests == 0)
		return;
	last = &nl->requests[nl->n_requests - 1];
	nl->out.len = last->offset;
	nl->out.len += MNL_ALIGN(((struct nlmsghdr *)(nl->out.data + last->offset))->nlmsg_len);
}

int rtnl_fd(const struct rtnl *nl)
{
	return mnl_socket_get_fd(nl->socket);
}

struct nlmsghdr *rtnl_put(struct rtnl *nl, uint16_t type, uint16_t flags, const void *head,
			  size_t head_len, const char *what, ...)
{
	struct rtnl_request *request;
	struct nlmsghdr *m;
	va_list ap;

	rtnl_end_request(nl);
	if (nl->n_requests == nl->room) {
		nl->room = nl->room ? nl->room * 2 : 4;
		nl->requests = mem_resize(nl->requests, nl->room, sizeof(*nl->requests));
	}
	request = &nl->requests[nl->n_requests++];
	*request = (struct rtnl_request){ .seq = ++nl->seq, .offset = nl->out.len };
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

static struct rtnl_request *rtnl_find_request(const struct rtnl *nl, const struct nlmsghdr *m)
{
	uint32_t i = m->nlmsg_seq - nl->requests[0].seq;

	if (m->nlmsg_pid != mnl_socket_get_portid(nl->socket) || i >= nl->n_requests)
		return NULL;
	return &nl->requests[i];
}

/* The kernel's text in an error reply, or NULL */
static const char *rtnl_find_error_text(const struct nlmsghdr *m)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(m);
	size_t at = sizeof(*error);
	const struct nlattr *attr;

	if (m->nlmsg_type != NLMSG_ERROR || !(m->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	if (!(m->nlmsg_flags & NLM_F_CAPPED))
		at += mnl_nlmsg_get_payload_len(&error->msg);
	mnl_attr_for_each(attr, m, at)
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			return mnl_attr_get_str(attr);
	return NULL;
}

/* Return: the result of a request, 0 or a negative errno; 1 if more messages follow */
static int rtnl_decode_result(const struct nlmsghdr *m)
{
	if (m->nlmsg_type != NLMSG_ERROR && m->nlmsg_type != NLMSG_DONE)
		return 1;
	if (mnl_nlmsg_get_payload_len(m) < sizeof(int))
		return m->nlmsg_type == NLMSG_DONE ? 0 : -EBADMSG;
	/* struct nlmsgerr begins with the error; NLMSG_DONE contains only the error */
	return *(const int *)mnl_nlmsg_get_payload(m);
}

/* Processes one datagram; decrements *left for each request that the datagram completes. Return: 0
 * or the first error */
static int rtnl_process_datagram(struct rtnl *nl, const char *data, int len, size_t *left,
				 struct hw_err *e)
{
	const struct nlmsghdr *m = (const struct nlmsghdr *)data;
	int first = 0;

	for (; mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len)) {
		struct rtnl_request *request;
		int result = rtnl_decode_result(m);
		const char *text;

		request = rtnl_find_request(nl, m);
		if (!request || request->answered)
			continue;
		if (m->nlmsg_flags & NLM_F_DUMP_INTR)
			nl->interrupted = true;
		if (result == 1)
			continue;
		request->answered = true;
		(*left)--;
		if (result >= 0 || first < 0)
			continue;
		text = rtnl_find_error_text(m);
		first = text ? err_set(e, result, "%s: %s", request->what, text)
			     : err_set(e, result, "%s", request->what);
	}
	return first;
}

/* Return: the length of one datagram; 0 if it is not from the kernel or if a signal interrupted the
 * call; or a negative errno */
static int rtnl_read_datagram(const struct rtnl *nl, char *data, size_t room)
{
	struct sockaddr_nl from = { 0 };
	struct iovec piece = { data, room };
	struct msghdr message = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &piece, .msg_iovlen = 1
	};
	ssize_t n;

	n = recvmsg(mnl_socket_get_fd(nl->socket), &message, 0);
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (message.msg_namelen != sizeof(from) || from.nl_pid != 0)
		return 0;
	return message.msg_flags & MSG_TRUNC ? -EMSGSIZE : (int)n;
}

static int rtnl_receive_replies(struct rtnl *nl, size_t left, struct hw_err *e)
{
	int first = 0;

	while (left > 0) {
		char *data = buf_reserve(&nl->in, RTNL_RECEIVE_MAX);
		struct hw_err why;
		int n, r;

		n = rtnl_read_datagram(nl, data, RTNL_RECEIVE_MAX);
		if (n < 0)
			return err_set(e, n, "%s: receive netlink reply", nl->requests[0].what);
		r = rtnl_process_datagram(nl, data, n, &left, &why);
		nl->in.len += MNL_ALIGN(n);
		if (r < 0 && first == 0) {
			first = r;
			*e = why;
		}
	}
	return first;
}

/* Sends the batch in portions of up to RTNL_SEND_MAX requests and receives the replies.
 * Return: 0 or the first error */
static int rtnl_exchange(struct rtnl *nl, struct hw_err *e)
{
	int error = 0;

	nl->in.len = 0;
	nl->interrupted = false;
	rtnl_end_request(nl);
	for (size_t first = 0; first < nl->n_requests; first += RTNL_SEND_MAX) {
		size_t n = nl->n_requests - first;
		size_t from = nl->requests[first].offset, to = nl->out.len;
		struct hw_err why;
		int r;

		if (n > RTNL_SEND_MAX) {
			n = RTNL_SEND_MAX;
			to = nl->requests[first + n].offset;
		}
		if (mnl_socket_sendto(nl->socket, nl->out.data + from, to - from) < 0)
			r = err_set(&why, -errno, "%s: send netlink request",
				    nl->requests[first].what);
		else
			r = rtnl_receive_replies(nl, n, &why);
		if (r < 0 && error == 0) {
			error = r;
			*e = why;
		}
	}
	return error;
}

void rtnl_discard(struct rtnl *nl)
{
	nl->n_requests = 0;
	nl->out.len = 0;
	nl->in.len = 0;
}

int rtnl_query(struct rtnl *nl,
	       int (*each)(void *ctx, const struct nlmsghdr *answer, struct hw_err *e), void *ctx,
	       struct hw_err *e)
{
	const struct nlmsghdr *m;
	int r, len;

	/* Repeats a dump that the kernel reports as inconsistent. */
	for (int tries = 1;; tries++) {
		r = rtnl_exchange(nl, e);
		if (r < 0 || !nl->interrupted)
			break;
		assert(nl->n_requests == 1);
		if (tries == RTNL_DUMP_TRIES) {
			log_debug("%s: dump interrupted %d times, the result may be incomplete",
				  nl->requests[0].what, RTNL_DUMP_TRIES);
			break;
		}
		nl->requests[0].answered = false;
	}
	m = (const struct nlmsghdr *)nl->in.data;
	len = nl->in.len;
	for (; r >= 0 && mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len))
		if (m->nlmsg_type >= NLMSG_MIN_TYPE && rtnl_find_request(nl, m))
			r = each(ctx, m, e);
	rtnl_discard(nl);
	return r < 0 ? r : 0;
}

static int rtnl_ignore(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	(void)ctx, (void)answer, (void)e;
	return 0;
}

int rtnl_commit(struct rtnl *nl, struct hw_err *e)
{
	return rtnl_query(nl, rtnl_ignore, NULL, e);
}

int rtnl_start(struct rtnl *nl)
{
	struct iovec message;

	assert(nl->n_requests > 0 && nl->n_requests <= RTNL_SEND_MAX);
	rtnl_end_request(nl);
	message = (struct iovec){ nl->out.data, nl->out.len };
	return sender_start(rtnl_fd(nl), &message, 1);
}

int rtnl_finish(struct rtnl *nl, int wait_us, struct hw_err *e)
{
	struct pollfd answer = { .fd = rtnl_fd(nl), .events = POLLIN };
	struct timespec wait = { .tv_nsec = wait_us * 1000L };
	int r;

	if (ppoll(&answer, 1, &wait, NULL) <= 0)
		return 1;
	r = rtnl_receive_replies(nl, nl->n_requests, e);
	rtnl_discard(nl);
	return r;
}

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

void rtnl_attr_text(const struct nlattr *attr, char *ret, size_t size)
{
	snprintf(ret, size, "%.*s", (int)mnl_attr_get_payload_len(attr), mnl_attr_get_str(attr));
}
