/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-probe.h - a plugin for tests, `probe`, which logs its calls
 */
#ifndef CNI_PLUGIN_TEST_PROBE_H
#define CNI_PLUGIN_TEST_PROBE_H

#include "cni/test.h"

#include <errno.h>

#include "cni/plugin/skel.h"

#define OWN_NETNS "/proc/self/ns/net"

struct probe_conf {
	int number;
};

struct probe_made {
	char *link;
};

/* What the plugin shall do, and how it was called. */
static struct {
	int add_fails, del_fails, own_gc_fails; /* errno; 0: succeed */
	const char *save;			/* ADD saves this as made->link */
	bool address;				/* ADD adds an address to the result */
	char *calls;				/* log: "ADD c1 eth0 netns=/x made=y;..." */
	size_t n_valid;
	bool valid_given, prev_given;
	int number;
} probe;

static inline void probe_log(const struct hw_call *call, const char *verb)
{
	const struct probe_made *made = call->created;
	const struct probe_conf *conf = call->conf;
	autofree char *before = probe.calls;

	probe.calls =
		str_printf("%s%s %s %s netns=%s made=%s;", str_or(before, ""), verb,
			   call->container_id, call->ifname, call->netns, str_or(made->link, ""));
	probe.prev_given = call->prev;
	probe.number = conf->number;
}

static inline int probe_add(struct hw_call *call, struct hw_err *e)
{
	struct probe_made *made = call->created;

	probe_log(call, "ADD");
	if (probe.save) {
		made->link = str_copy(probe.save);
		int r = hw_record_save(call, e);
		if (r < 0)
			return r;
	}
	if (probe.add_fails)
		return hw_err_text(e, -probe.add_fails, "add failed");
	if (probe.address)
		return hw_prefix_parse("192.0.2.1/24", &hw_result_add_ip(call->result)->address, e);
	return 0;
}

static inline int probe_del(struct hw_call *call, struct hw_err *e)
{
	probe_log(call, str_equal(call->command, "ADD") ? "undo" : "DEL");
	if (probe.del_fails)
		return hw_err_text(e, -probe.del_fails, "del failed");
	return 0;
}

static inline int probe_check(struct hw_call *call, struct hw_err *e)
{
	probe_log(call, "CHECK");
	hw_err_cni(e, 123, "attachment changed");
	return hw_err_details(e, "lo is down");
}

static inline int probe_gc(struct hw_call *call, struct hw_err *e)
{
	probe_log(call, "GC");
	probe.valid_given = call->valid;
	probe.n_valid = call->n_valid;
	if (probe.own_gc_fails)
		return hw_err_text(e, -probe.own_gc_fails, "gc failed");
	return 0;
}

static const struct hw_field probe_fields[] = {
	{ "number", HW_INT, HW_AT(struct probe_conf, number), .def = "3", .help = "any" },
	{ 0 },
};

static const struct hw_field created_fields[] = {
	{ "link", HW_STRING, HW_AT(struct probe_made, link) },
	{ 0 },
};

static struct hw_plugin plugin;

/* Request and reply of one call; each test changes the members that it needs. */
struct fixture {
	struct place *place;
	struct skel_request request;
	struct skel_reply reply;
	struct hw_err e;
};

static inline int setup(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));
	void *place;

	if (place_setup(&place) < 0)
		return -1;
	f->place = place;
	f->request = (struct skel_request){
		.command = "ADD",
		.container_id = "c1",
		.netns = "/nowhere",
		.ifname = "eth0",
		.path = "/opt/cni/bin",
		.state_dir = f->place->state,
		.lock_timeout_ms = 100,
	};
	plugin = (struct hw_plugin){
		.size = sizeof(plugin),
		.name = "probe",
		.add = probe_add,
		.del = probe_del,
		.check = probe_check,
		.gc = probe_gc,
		.fields = probe_fields,
		.conf_size = sizeof(struct probe_conf),
		.created_fields = created_fields,
		.created_size = sizeof(struct probe_made),
	};
	memset(&probe, 0, sizeof(probe));
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	void *place = f->place;

	skel_reply_done(&f->reply);
	free(probe.calls);
	free(f);
	return place_teardown(&place);
}

#define CONF(version) "{\"cniVersion\":\"" version "\",\"name\":\"net\",\"type\":\"probe\"}"
#define WITH_VALID(list)                                                                           \
	"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"cni.dev/valid-attachments\":" list "}"

static inline int call(struct fixture *f, const char *command, const char *config)
{
	f->request.command = command;
	f->request.input = config;
	f->request.input_len = strlen(config);
	skel_reply_done(&f->reply);
	return skel_call(&plugin, &f->request, &f->reply, &f->e);
}

static inline void expect_success(struct fixture *f, const char *command, const char *config)
{
	if (call(f, command, config) < 0)
		fail_msg("%s: %s", command, f->e.msg);
	assert_int_equal(f->reply.status, 0);
}

/* The call must fail, and print only the error object. */
static inline void expect_error(struct fixture *f, const char *command, const char *config,
				int code, const char *msg)
{
	assert_int_equal(call(f, command, config), -1);
	assert_int_equal(f->reply.status, 1);
	assert_string_equal(f->e.msg, msg);
	assert_int_equal(hw_err_wire(&f->e), code);
	autofree char *line = str_printf("\n    \"code\": %d,\n", code);
	assert_contains(f->reply.output, line);
	assert_int_equal(f->reply.output[strlen(f->reply.output) - 1], '}');
}

static inline void assert_calls(const char *want)
{
	assert_string_equal(str_or(probe.calls, ""), want);
	free(take_ptr(probe.calls));
}

#endif
