/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/wire.c - nftables netlink messages, requests and batches
 *
 * How:   the kernel executes a message inside send(), so all replies can be read
 *        right after send() without waiting. The kernel replies to a batch only if
 *        there are errors.
 * Rules: messages that are not from the kernel are ignored.
 */
#include "net/nft/wire.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "net/sender.h"

#define MESSAGE_MAX 1024
#define RECEIVE_MAX 32768
#define DUMP_TRIES  6
#define BATCH_USUAL 16384
#define SEND_SPARE  65536
#define RETRY_MS    10000
#define RETRY_FAST  4 /* so many attempts follow each other without a pause */
#define NAP_MAX_MS  32
#define REPLY_COST  16 /* an error reply may need this many times the space of its request */

int nft_open(struct nft **ret_nft, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = mem_new(sizeof(*nft));
	int on = 1;

	nft->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	/* Opening succeeds without netfilter; later requests fail. */
	if (!nft->socket && errno == EPROTONOSUPPORT) {
		*ret_nft = take_ptr(nft);
		return 0;
	}
	if (!nft->socket || mnl_socket_bind(nft->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return err_set(e, -errno, "open nftables socket");
	(void)mnl_socket_setsockopt(nft->socket, NETLINK_CAP_ACK, &on, sizeof(on));
	*ret_nft = take_ptr(nft);
	return 0;
}

struct mnl_socket *nft_socket(struct nft *nft)
{
	return nft->socket;
}

void nft_close(struct nft *nft)
{
	if (!nft)
		return;
	if (nft->deleted && nft->socket)
		sender_hold(mnl_socket_get_fd(nft->socket));
	if (nft->socket)
		mnl_socket_close(nft->socket);
	buf_done(&nft->out);
	buf_done(&nft->in);
	free(nft);
}

/* ---- messages ---------------------------------------------------------------------------- */

uint8_t nft_family(enum nft_table table)
{
	return table == NFT_INET ? NFPROTO_INET : NFPROTO_BRIDGE;
}

static struct nlmsghdr *put_header(struct nft *nft, uint16_t type, uint16_t flags, uint8_t family,
				   uint16_t subsystem)
{
	char *room = buf_reserve(&nft->out, MESSAGE_MAX);
	struct nlmsghdr *m;
	struct nfgenmsg *head;

	memset(room, 0, MESSAGE_MAX); /* libmnl does not clear the padding of attributes */
	m = mnl_nlmsg_put_header(room);
	m->nlmsg_type = type;
	m->nlmsg_flags = NLM_F_REQUEST | flags;
	m->nlmsg_seq = ++nft->seq;
	head = mnl_nlmsg_put_extra_header(m, sizeof(*head));
	head->nfgen_family = family;
	head->version = NFNETLINK_V0;
	head->res_id = htons(subsystem);
	return m;
}

void nft_end_message(struct nft *nft, const struct nlmsghdr *m)
{
	assert(m->nlmsg_len <= MESSAGE_MAX);
	buf_commit(&nft->out, MNL_ALIGN(m->nlmsg_len));
}

void nft_put_name(struct nlmsghdr *m, uint16_t type, const char *name)
{
	assert(strlen(name) < NFT_NAME_MAX);
	mnl_attr_put_strz(m, type, name);
}

struct nlmsghdr *nft_start_message(struct nft *nft, uint16_t type, uint16_t flags, uint8_t family)
{
	return put_header(nft, NFNL_SUBSYS_NFTABLES << 8 | type, flags, family, 0);
}

struct nlmsghdr *nft_start_request(struct nft *nft, uint16_t type, uint16_t flags, uint8_t family)
{
	nft->out.len = 0;
	return nft_start_message(nft, type, flags, family);
}

/* Return: 1 if a datagram was read, 0 if the queue is empty, or a negative errno */
static int receive_datagram(struct nft *nft)
{
	struct sockaddr_nl from = { 0 };
	struct iovec piece = { buf_reserve(&nft->in, RECEIVE_MAX), RECEIVE_MAX };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &piece, .msg_iovlen = 1
	};
	ssize_t n;

	n = recvmsg(mnl_socket_get_fd(nft->socket), &m, MSG_DONTWAIT);
	if (n < 0 && errno == EINTR)
		return 1;
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (from.nl_pid == 0)
		buf_commit(&nft->in, MNL_ALIGN((size_t)n));
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : 1;
}

/* Sends nft->out; all replies are in nft->in afterwards. */
static int exchange(struct nft *nft, struct hw_err *e)
{
	int send = (int)nft->out.len + SEND_SPARE, receive = (int)nft->out.len * REPLY_COST;
	bool lost = false;
	int fd, r;

	nft->in.len = 0;
	if (!nft->socket)
		return err_set(e, -EPROTONOSUPPORT, "this kernel has no netfilter");
	/* A large batch, such as a thousand ports, needs larger buffers: the send buffer must hold
	 * the batch, and the receive buffer must hold an error reply for each message. */
	fd = mnl_socket_get_fd(nft->socket);
	if (nft->out.len > BATCH_USUAL) {
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &send, sizeof(send));
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive, sizeof(receive));
	}
	if (mnl_socket_sendto(nft->socket, nft->out.data, nft->out.len) < 0)
		return err_set(e, -errno, "send nftables request");
	do {
		r = receive_datagram(nft);
		lost |= r == -ENOBUFS;
	} while (r > 0 || r == -ENOBUFS);
	if (r == 0 && lost)
		r = -ENOBUFS;
	return r < 0 ? err_set(e, r, "receive nftables reply") : 0;
}

/* Return: 0; the first error reply, except @ignored; or the first negative value that @each returned */
static int process_replies(struct nft *nft, uint32_t first, int ignored, nft_reply_fn *each,
			   void *ctx, struct hw_err *e)
{
	const struct nlmsghdr *m = (const struct nlmsghdr *)nft->in.data;
	int left = (int)nft->in.len;

	for (; m && mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left)) {
		int r = 0;

		if (m->nlmsg_seq < first)
			continue;
		if (m->nlmsg_type == NLMSG_ERROR) {
			r = ((const struct nlmsgerr *)mnl_nlmsg_get_payload(m))->error;
			if (r < 0 && r != ignored)
				return err_text(e, r, "%s", strerror(-r));
			r = 0;
		} else if (m->nlmsg_type >= NLMSG_MIN_TYPE && each) {
			r = each(ctx, m, e);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_dump_consistent(const struct nft *nft)
{
	const struct nlmsghdr *m = (const struct nlmsghdr *)nft->in.data;
	int left = (int)nft->in.len;

	for (; m && mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left))
		if (m->nlmsg_flags & NLM_F_DUMP_INTR)
			return false;
	return true;
}

int nft_send_request(struct nft *nft, const struct nlmsghdr *m, nft_reply_fn *each, void *ctx,
		     struct hw_err *e)
{
	uint32_t seq = m->nlmsg_seq;
	int r = 0;

	nft_end_message(nft, m);
	for (int tries = 0; tries < DUMP_TRIES; tries++) {
		r = exchange(nft, e);
		if (r < 0)
			return r;
		if (is_dump_consistent(nft))
			break;
	}
	return process_replies(nft, seq, 0, each, ctx, e);
}

uint32_t nft_start_requests(struct nft *nft)
{
	nft->out.len = 0;
	nft->first = nft->seq + 1;
	return nft->first;
}

int nft_send_requests(struct nft *nft, nft_reply_fn *each, void *ctx, struct hw_err *e)
{
	int r;

	r = exchange(nft, e);
	return r < 0 ? r : process_replies(nft, nft->first, -ENOENT, each, ctx, e);
}

void nft_batch_begin(struct nft *nft, uint32_t generation)
{
	struct nlmsghdr *m;

	nft->out.len = 0;
	m = put_header(nft, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	nft->first = m->nlmsg_seq;
	if (generation)
		mnl_attr_put_u32(m, NFNL_BATCH_GENID, generation);
	nft_end_message(nft, m);
}

int nft_batch_commit(struct nft *nft, struct hw_err *e)
{
	struct nlmsghdr *m =
		put_header(nft, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	int r;

	nft_end_message(nft, m);
	r = exchange(nft, e);
	return r < 0 ? r : process_replies(nft, nft->first, 0, NULL, NULL, e);
}

static int decode_generation(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg))
		if (mnl_attr_get_type(attr) == NFTA_GEN_ID)
			*(uint32_t *)ctx = mnl_attr_get_u32(attr);
	return 0;
}

int nft_get_generation(struct nft *nft, uint32_t *ret_generation, struct hw_err *e)
{
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETGEN, 0, AF_UNSPEC);
	int r;

	r = nft_send_request(nft, m, decode_generation, ret_generation, e);
	return r < 0 ? err_ctx(e, "read the nftables generation") : 0;
}

bool nft_is_unsupported(struct nft *nft)
{
	uint32_t generation;
	struct hw_err e;
	int r;

	r = nft_get_generation(nft, &generation, &e);
	return r == -EINVAL || r == -EOPNOTSUPP || r == -EPROTONOSUPPORT;
}

struct nft_retry nft_retry_start(void)
{
	return (struct nft_retry){ .deadline = time_deadline(RETRY_MS) };
}

int nft_retry_wait(struct nft_retry *retry, struct hw_err *e)
{
	int nap = 1;

	retry->lost++;
	if (time_has_passed(retry->deadline))
		return err_cni(
			e, HW_CNI_TRY_AGAIN,
			"other programs changed nftables during each of %d attempts to change "
			"it",
			retry->lost);
	if (retry->lost < RETRY_FAST)
		return 0;
	for (int i = RETRY_FAST; i < retry->lost && nap < NAP_MAX_MS; i++)
		nap *= 2;
	time_sleep(nap);
	return 0;
}
