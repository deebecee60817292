/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/probe.h - what the files of the probe share: messages, sockets, the pod
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

#define BRIDGE	 "probe0"
#define POD_LINK "eth0"
#define ROOM	 8192

struct nlmsghdr;

struct batch {
	char bytes[ROOM];
	size_t len;
	unsigned n;
};

struct pod {
	char host[IF_NAMESIZE];
	unsigned queues;
	uint32_t address, gateway, network; /* network byte order */
	uint16_t port;			    /* host port, network byte order */
	int netns;
};

void __attribute__((noreturn)) die(const char *what);

/* Begins and ends a message with NLM_F_ACK. */
struct nlmsghdr *put(struct batch *b, uint16_t type, uint16_t flags);
void put_end(struct batch *b, const struct nlmsghdr *m);
void put_link(struct batch *b, uint16_t type, const char *name, const char *kind, unsigned index);

int open_socket(int protocol);
int open_socket_in(int netns); /* rtnetlink */
void commit(int fd, const struct batch *b);
unsigned get_index(int fd, const char *name);

void add_bridge(const struct pod *pod, unsigned bridge, int host, int inside);

/* probe-chain.c */
void add_chain(const struct pod *pod, unsigned bridge);
void delete_chain(const struct pod *pod);

#endif
