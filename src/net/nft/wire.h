/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/wire.h - nftables netlink messages, requests and batches; internal to net
 *
 * What:  a request is a single message that the kernel replies to. A batch of messages
 *        is one transaction: the kernel executes it completely or not at all.
 */
#ifndef NET_NFT_WIRE_H
#define NET_NFT_WIRE_H

#include <libmnl/libmnl.h>

#include "base/buf.h"
#include "net/nft/nft.h"

#define NFT_NAME_MAX 256 /* the kernel's limit for names of tables and chains, with the NUL */

struct nft {
	struct mnl_socket *socket; /* NULL: the kernel has no netfilter */
	uint32_t seq;
	uint32_t first; /* sequence number of the first message of the batch or requests */
	struct buf out; /* the request or batch to send */
	struct buf in;	/* the replies */
	bool deleted;	/* an object was deleted, so close() would block */
	bool loaded[2]; /* indexed by enum nft_table: a check found the rules loaded */
};

typedef int nft_reply_fn(void *ctx, const struct nlmsghdr *m, struct hw_err *e);

/* The kernel's family of one of hawser's tables */
uint8_t nft_family(enum nft_table table);

/* Start a message of a batch, with room for about 1000 bytes of attributes. */
struct nlmsghdr *nft_start_message(struct nft *nft, uint16_t type, uint16_t flags, uint8_t family);
/* Start a request, which is sent alone. */
struct nlmsghdr *nft_start_request(struct nft *nft, uint16_t type, uint16_t flags, uint8_t family);
/* Complete a message after all its attributes were put; the next message can then be started. */
void nft_end_message(struct nft *nft, const struct nlmsghdr *m);
/* Put the name of a table or chain, which must be shorter than NFT_NAME_MAX. */
void nft_put_name(struct nlmsghdr *m, uint16_t type, const char *name);

/* Send a request, receive all replies, then call each() (may be NULL) for every reply. A negative
 * return value of each() ends the loop and is returned. If the ruleset changed during a dump, the
 * dump is repeated. Return: 0 or a negative errno. After an error reply of the kernel *e contains
 * only the kernel's text: the caller adds what failed */
int nft_send_request(struct nft *nft, const struct nlmsghdr *m, nft_reply_fn *each, void *ctx,
		     struct hw_err *e);

/* Start several requests, which are sent together: each one with nft_start_message() and
 * nft_end_message(). Return: the sequence number of the first one */
uint32_t nft_start_requests(struct nft *nft);
/* Like nft_send_request(), for several requests. Requests that fail with -ENOENT have no reply. */
int nft_send_requests(struct nft *nft, nft_reply_fn *each, void *ctx, struct hw_err *e);

/* Start a batch. generation: a value of nft_get_generation(); the batch fails unless this is still
 * the current generation. 0: do not check the generation */
void nft_batch_begin(struct nft *nft, uint32_t generation);
/* Send the batch. Return: 0 or the kernel's error; -ERESTART if the generation has changed;
 * -ENOBUFS if there were so many error replies that some were lost. The caller adds what failed to
 * *e */
int nft_batch_commit(struct nft *nft, struct hw_err *e);

/* Read the generation number, which changes with every change of the ruleset. It is in network byte
 * order, as nft_batch_begin() expects it. */
int nft_get_generation(struct nft *nft, uint32_t *ret_generation, struct hw_err *e);

/* Attempts at a change that fails with -ERESTART if another program changes the ruleset meanwhile */
struct nft_retry {
	int64_t deadline;
	int lost; /* attempts that failed */
};

struct nft_retry nft_retry_start(void);
/* After a failed attempt: wait before the next one; longer each time, except after the first few.
 * Return: 0, or CNI code 11 if the deadline has passed */
int nft_retry_wait(struct nft_retry *retry, struct hw_err *e);

#endif
