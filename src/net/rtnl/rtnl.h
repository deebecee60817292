/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rtnl.h - rtnetlink: a socket, batches of requests, dumps
 *
 * What:  one socket per network namespace. Requests are added to a batch and
 *        sent together; the kernel replies to each request separately.
 * How:   rtnl_put() starts a request, mnl_attr_put_*() add its attributes,
 *        rtnl_commit() sends the batch and waits for all replies:
 *
 *	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWLINK, 0, &head, sizeof(head),
 *				      "set interface %s up", name);
 *	mnl_attr_put_strz(m, IFLA_IFNAME, name);
 *	return rtnl_commit(nl, e);
 *
 * Rules: a struct rtnl is used by one thread at a time. A batch is not a
 *        transaction: if a request fails, the kernel still executes the requests
 *        after it, and the first error is returned.
 */
#ifndef NET_RTNL_RTNL_H
#define NET_RTNL_RTNL_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#define RTNL_ATTRS_MAX 2048 /* room for the attributes of one request */

struct rtnl;

/* Open a socket in the namespace netns_fd (see netns_enter()), or in the current one if it is -1.
 * The socket stays in that namespace. */
int rtnl_open(int netns_fd, struct rtnl **ret_nl, struct hw_err *e);
/* Close the socket. A batch that was not committed is discarded. */
void rtnl_close(struct rtnl *nl);
int rtnl_fd(const struct rtnl *nl); /* for ioctl() */

/*
 * Start a request at the end of the batch.
 * type:  RTM_...
 * flags: in addition to NLM_F_REQUEST and NLM_F_ACK; a request with NLM_F_DUMP must be alone in its
 *        batch
 * head:  the family's header, such as struct ifinfomsg
 * what:  action and object, such as "set interface eth0 up"; error texts begin with this text
 * Return: the message, with room for RTNL_ATTRS_MAX bytes of attributes; valid until the next call
 *         with nl
 */
struct nlmsghdr *rtnl_put(struct rtnl *nl, uint16_t type, uint16_t flags, const void *head,
			  size_t head_len, const char *what, ...)
	__attribute__((format(printf, 6, 7)));
/* Send the batch and wait until the kernel has executed it. Afterwards the batch is empty, also
 * after a failure. Return: 0, or the error of the first request that failed */
int rtnl_commit(struct rtnl *nl, struct hw_err *e);
/* Like rtnl_commit(), and call each() for every message of the replies, after all replies have
 * arrived. A negative return value of each() ends the loop and is returned. */
int rtnl_query(struct rtnl *nl,
	       int (*each)(void *ctx, const struct nlmsghdr *answer, struct hw_err *e), void *ctx,
	       struct hw_err *e);

/* Start to execute the batch and return at once: a helper process (net/sender.h) sends the batch,
 * which may have at most 64 requests. The replies arrive at this socket; the requests are executed
 * even if this socket is closed earlier.
 * Return: 0, then the caller must call rtnl_finish() or rtnl_discard(); or a negative errno, then
 * nothing was sent, and the caller can still call rtnl_commit() */
int rtnl_start(struct rtnl *nl);
/* Get the result of a batch that rtnl_start() started. Waits up to wait_us microseconds for the
 * first reply. Return: 1 if there is no reply yet, then call again; else the same as
 * rtnl_commit() */
int rtnl_finish(struct rtnl *nl, int wait_us, struct hw_err *e);
/* Empty the batch; replies that arrive later are ignored. */
void rtnl_discard(struct rtnl *nl);

/* Read an attribute of 1, 2 or 4 bytes as a number. Return: 0 if it has any other length */
uint32_t rtnl_attr_number(const struct nlattr *attr);
/* Copy the text of an attribute, with or without a final NUL; truncated to size */
void rtnl_attr_text(const struct nlattr *attr, char *ret, size_t size);

AUTO_DEFINE(rtnl_close, struct rtnl);

#endif
