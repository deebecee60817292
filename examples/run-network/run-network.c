/* SPDX-License-Identifier: Apache-2.0 */
/* run-network.c - attach a network namespace to a CNI network, check it, detach it */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>

#include <hawser/cni.h>

/* The library installs no signal handlers. A call is cancelled when this descriptor becomes readable. */
static int open_cancel_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int attach_and_detach(struct hw_cni *cni, struct hw_conf *conf, struct hw_attach *at,
			     struct hw_err *e)
{
	struct hw_result *result;
	char text[HW_PREFIX_TEXT];
	int r;

	r = hw_add(cni, conf, at, HW_ADD_UNDO, &result, e);
	if (r < 0)
		return r;
	printf("attached to %s\n", hw_conf_name(conf));
	for (size_t i = 0; i < result->n_ips; i++)
		printf("address %s\n", hw_prefix_format(&result->ips[i].address, text));
	hw_result_free(result);

	r = hw_check(cni, conf, at, e);
	if (r == 0)
		printf("checked\n");
	at->cancel_fd = -1; /* the DEL must not be cancelled */
	if (hw_del(cni, conf, at, e) < 0)
		return e->code;
	printf("detached\n");
	return r;
}

int main(int argc, char **argv)
{
	const char *dirs[] = { getenv("CNI_PATH"), NULL };
	struct hw_cni_options options = { .size = sizeof(options),
					  .plugin_dirs = dirs,
					  .cache_dir = getenv("CNI_CACHE") };
	struct hw_attach at = { .size = sizeof(at),
				.container_id = "run-network",
				.ifname = "eth0",
				.cancel_fd = open_cancel_fd(),
				.timeout_ms = 30000 };
	struct hw_conf *conf = NULL;
	struct hw_cni *cni = NULL;
	struct hw_err e;
	char text[4096];
	int r;

	if (argc != 4 || !dirs[0]) {
		fprintf(stderr, "usage: CNI_PATH=DIR %s CONFIG-DIR NETWORK NETNS\n", argv[0]);
		return 2;
	}
	at.netns = argv[3];
	r = hw_conf_load(argv[1], argv[2], &conf, &e);
	if (r == 0)
		r = hw_cni_new(&options, &cni, &e);
	if (r == 0)
		r = attach_and_detach(cni, conf, &at, &e);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[0], hw_err_format(&e, text, sizeof(text)));
	hw_cni_free(cni);
	hw_conf_free(conf);
	return r < 0;
}
