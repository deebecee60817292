/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/forward.c - measure how fast a host forwards small packets to a pod
 *
 * What:  forward SAMPLES PACKETS one|many (SENDER ADDRESS PORT POD POD-PORT)...
 *        For each set of five arguments: sends PACKETS datagrams of 18 bytes from
 *        the network namespace SENDER to ADDRESS and PORT, and receives them at
 *        POD-PORT in the namespace POD. With "one" all packets belong to one flow,
 *        with "many" each packet starts a new flow. Prints a line for each sample: for
 *        each set the nanoseconds from the first packet sent to the last received.
 * How:   sends raw packets, so that a new flow needs no new socket. The source address
 *        in 100.64.0.0/16 depends on the process ID, so that the flows of an earlier
 *        run are not reused. One thread sends and receives, so that all work is done on
 *        one processor. Each sample starts with a different set. A tenth of the samples
 *        is run first as warm-up and not printed.
 * Rules: a sample in which a packet was lost is repeated. The run fails if this happens
 *        more than LOST_MAX times.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SETS_MAX   4
#define PAYLOAD	   18
#define BATCH	   32
#define ROOM	   (64 << 20)
#define WAIT_MS	   2000
#define LOST_MAX   5
#define FIRST_PORT 1024
#define SOURCES	   0x64400000 /* 100.64.0.0 */

struct packet {
	struct iphdr ip;
	struct udphdr udp;
	char payload[PAYLOAD];
} __attribute__((packed));

struct set {
	int out, in;
	struct sockaddr_in to;
	uint16_t next; /* source port of the next packet */
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *what, ...)
{
	va_list ap;

	fprintf(stderr, "forward: ");
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

static int parse_number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	errno = EINVAL;
	if (end == text || *end || n < 1 || n > 1000000)
		die("%s", text);
	return (int)n;
}

static int socket_in(const char *netns, int type, int protocol)
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		die("enter %s", netns);
	close(fd);
	fd = socket(AF_INET, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		die("open a socket in %s", netns);
	return fd;
}

static void set_open(struct set *set, char **words)
{
	struct sockaddr_in local = { .sin_family = AF_INET,
				     .sin_port = htons(parse_number(words[4])) };
	int room = ROOM;

	*set = (struct set){ .next = FIRST_PORT };
	set->to = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_port = htons(parse_number(words[2])) };
	if (inet_pton(AF_INET, words[1], &set->to.sin_addr) != 1)
		die("address %s", words[1]);
	set->out = socket_in(words[0], SOCK_RAW, IPPROTO_RAW);
	set->in = socket_in(words[3], SOCK_DGRAM, 0);
	if (setsockopt(set->in, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0 ||
	    bind(set->in, (struct sockaddr *)&local, sizeof(local)) < 0)
		die("listen in %s", words[3]);
}

static struct packet new_packet(struct set *set, bool many)
{
	struct packet p = {
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP },
		.udp = { .source = htons(set->next), .dest = set->to.sin_port },
	};

	p.ip.tot_len = htons(sizeof(p));
	p.ip.saddr = htonl(SOURCES | ((uint32_t)getpid() & 0xffff));
	p.ip.daddr = set->to.sin_addr.s_addr;
	p.udp.len = htons(sizeof(p.udp) + PAYLOAD);
	if (many && ++set->next == 0)
		set->next = FIRST_PORT;
	return p;
}

static void send_packets(struct set *set, int n, bool many)
{
	struct packet packets[BATCH];
	struct iovec parts[BATCH];
	struct mmsghdr messages[BATCH] = { 0 };

	for (int i = 0; i < n; i++) {
		packets[i] = new_packet(set, many);
		parts[i] = (struct iovec){ &packets[i], sizeof(packets[i]) };
		messages[i].msg_hdr = (struct msghdr){ .msg_name = &set->to,
						       .msg_namelen = sizeof(set->to),
						       .msg_iov = &parts[i],
						       .msg_iovlen = 1 };
	}
	for (int sent = 0; sent < n;) {
		int r = sendmmsg(set->out, messages + sent, (unsigned)(n - sent), 0);
		if (r < 0)
			die("send");
		sent += r;
	}
}

/* Receives all packets that have arrived. Return: their number */
static int receive_packets(struct set *set)
{
	char bytes[BATCH][PAYLOAD];
	struct iovec parts[BATCH];
	struct mmsghdr messages[BATCH] = { 0 };
	int all = 0, r;

	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ bytes[i], PAYLOAD };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
	do {
		r = recvmmsg(set->in, messages, BATCH, MSG_DONTWAIT, NULL);
		if (r < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			die("receive");
		all += r > 0 ? r : 0;
	} while (r == BATCH);
	return all;
}

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Return: nanoseconds, or -1 if a packet was lost */
static long long try_sample(struct set *set, int packets, bool many)
{
	struct pollfd in = { .fd = set->in, .events = POLLIN };
	long long start = now_ns();
	int received = 0;

	for (int sent = 0; sent < packets; sent += BATCH) {
		send_packets(set, packets - sent < BATCH ? packets - sent : BATCH, many);
		received += receive_packets(set);
	}
	while (received < packets) {
		if (poll(&in, 1, WAIT_MS) != 1)
			return -1;
		received += receive_packets(set);
	}
	return now_ns() - start;
}

static long long run_sample(struct set *set, int packets, bool many)
{
	static int lost;
	long long took = try_sample(set, packets, many);

	while (took < 0) {
		errno = ETIMEDOUT;
		if (++lost > LOST_MAX)
			die("packets lost in more than %d samples", LOST_MAX);
		took = try_sample(set, packets, many);
	}
	return took;
}

int main(int argc, char **argv)
{
	long long took[SETS_MAX];
	struct set sets[SETS_MAX];
	int n_sets = (argc - 4) / 5;

	if (argc < 9 || (argc - 4) % 5 || n_sets > SETS_MAX) {
		fprintf(stderr, "usage: forward SAMPLES PACKETS one|many "
				"(SENDER ADDRESS PORT POD POD-PORT)...\n");
		return 2;
	}
	int samples = parse_number(argv[1]), packets = parse_number(argv[2]);
	int warm_up = samples / 10 + 1;
	bool many = strcmp(argv[3], "many") == 0;

	for (int i = 0; i < n_sets; i++)
		set_open(&sets[i], argv + 4 + 5 * (size_t)i);
	for (int sample = -warm_up; sample < samples; sample++) {
		for (int i = 0; i < n_sets; i++) {
			int turn = (i + sample + warm_up) % n_sets;

			took[turn] = run_sample(&sets[turn], packets, many);
		}
		for (int i = 0; sample >= 0 && i < n_sets; i++)
			printf("%lld%c", took[i], i + 1 < n_sets ? ' ' : '\n');
	}
	return 0;
}
