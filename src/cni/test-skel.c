/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-skel.c - calls of a plugin, from the environment to the answer
 *
 * One plugin, `probe`, notes how it was called and does as it is told.
 */
#include "cni/skel.h"

#include "cni/test.h"

#include <errno.h>

#include "base/time.h"
#include "cni/lock.h"

#define OWN_NETNS "/proc/self/ns/net"

struct probe_conf {
	int number;
};

struct probe_made {
	char *link;
};

/* What the plugin is to do, and what it saw. */
static struct {
	int add_fails, del_fails, own_gc_fails; /* errno; 0: succeed */
	const char *save;			/* ADD writes this down as made */
	bool address;				/* ADD puts one into the result */
	char *calls;				/* "ADD c1 eth0 /netns made=x;" and so on */
	size_t n_valid;
	bool valid_given, prev_given;
	int number;
} probe;

static void probe_note(const struct hw_call *call, const char *verb)
{
	const struct probe_made *made = call->made;
	const struct probe_conf *conf = call->conf;
	autofree char *before = probe.calls;

	probe.calls =
		str_printf("%s%s %s %s netns=%s made=%s;", str_or(before, ""), verb,
			   call->container_id, call->ifname, call->netns, str_or(made->link, ""));
	probe.prev_given = call->prev;
	probe.number = conf->number;
}

static int probe_add(struct hw_call *call, struct hw_err *e)
{
	struct probe_made *made = call->made;

	probe_note(call, call->earlier ? "ADD-again" : "ADD");
	if (probe.save) {
		made->link = str_copy(probe.save);
		assert_int_equal(hw_record_save(call, e), 0);
	}
	if (probe.add_fails)
		return hw_err_text(e, -probe.add_fails, "add failed");
	if (probe.address)
		return hw_prefix_parse("192.0.2.1/24", &hw_result_add_ip(call->result)->address, e);
	return 0;
}

static int probe_del(struct hw_call *call, struct hw_err *e)
{
	probe_note(call, str_equal(call->command, "ADD") ? "undo" : "DEL");
	if (probe.del_fails)
		return hw_err_text(e, -probe.del_fails, "del failed");
	return 0;
}

static int probe_check(struct hw_call *call, struct hw_err *e)
{
	probe_note(call, "CHECK");
	hw_err_cni(e, 123, "not as it was");
	return hw_err_details(e, "lo is down");
}

static int probe_gc(struct hw_call *call, struct hw_err *e)
{
	probe_note(call, "GC");
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

static const struct hw_field made_fields[] = {
	{ "link", HW_STRING, HW_AT(struct probe_made, link) },
	{ 0 },
};

static struct hw_plugin plugin;

/* A call in the making; each test changes what it is about. */
struct fixture {
	struct place *place;
	struct skel_request request;
	struct skel_reply reply;
	struct hw_err e;
};

static int setup(void **state)
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
		.made_fields = made_fields,
		.made_size = sizeof(struct probe_made),
	};
	memset(&probe, 0, sizeof(probe));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *place = f->place;

	skel_reply_done(&f->reply);
	free(probe.calls);
	free(f);
	return place_teardown(&place);
}

#define CONF(version) "{\"cniVersion\":\"" version "\",\"name\":\"net\",\"type\":\"probe\"}"

static int call(struct fixture *f, const char *command, const char *config)
{
	f->request.command = command;
	f->request.input = config;
	f->request.input_len = strlen(config);
	skel_reply_done(&f->reply);
	return skel_call(&plugin, &f->request, &f->reply, &f->e);
}

static void succeed(struct fixture *f, const char *command, const char *config)
{
	if (call(f, command, config) < 0)
		fail_msg("%s: %s", command, f->e.msg);
	assert_int_equal(f->reply.status, 0);
}

/* The error object is what the error says, and nothing but it is printed. */
static void refuse(struct fixture *f, const char *command, const char *config, int code,
		   const char *msg)
{
	assert_int_equal(call(f, command, config), -1);
	assert_int_equal(f->reply.status, 1);
	assert_string_equal(f->e.msg, msg);
	assert_int_equal(hw_err_wire(&f->e), code);
	autofree char *line = str_printf("\n    \"code\": %d,\n", code);
	assert_contains(f->reply.output, line);
	assert_int_equal(f->reply.output[strlen(f->reply.output) - 1], '}');
}

static void assert_calls(const char *want)
{
	assert_string_equal(str_or(probe.calls, ""), want);
	free(take_ptr(probe.calls));
}

/* ---- the environment ------------------------------------------------------- */

static void about(void **state)
{
	struct fixture *f = *state;

	succeed(f, "", "");
	assert_null(f->reply.output);
	assert_string_equal(f->reply.notice,
			    "CNI probe plugin hawser " HAWSER_VERSION "\n"
			    "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, "
			    "1.0.0, 1.1.0\n");
	assert_false(skel_wants_input(&f->request));
}

static void missing_variables(void **state)
{
	struct fixture *f = *state;

	f->request.container_id = f->request.netns = "";
	f->request.ifname = f->request.path = NULL;
	refuse(f, "ADD", "", HW_CNI_INVALID_ENV,
	       "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing");
	refuse(f, "CHECK", "", HW_CNI_INVALID_ENV,
	       "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing");
	refuse(f, "DEL", "", HW_CNI_INVALID_ENV,
	       "required env variables [CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing");
	refuse(f, "GC", "", HW_CNI_INVALID_ENV, "required env variables [CNI_PATH] missing");
	refuse(f, "STATUS", "", HW_CNI_INVALID_ENV, "required env variables [CNI_PATH] missing");
	assert_false(skel_wants_input(&f->request));
	assert_calls("");
}

static void wrong_variables(void **state)
{
	struct fixture *f = *state;

	f->request.path = NULL;
	f->request.container_id = "-c1";
	refuse(f, "ADD", CONF("1.0.0"), HW_CNI_INVALID_ENV, "invalid characters in containerID");
	assert_string_equal(f->e.details, "-c1");
	f->request.container_id = "c1";
	f->request.ifname = "a/b";
	refuse(f, "DEL", CONF("1.0.0"), HW_CNI_INVALID_ENV,
	       "interface name contains / or : or whitespace characters");
	f->request.ifname = "0123456789abcdef";
	refuse(f, "CHECK", CONF("1.0.0"), HW_CNI_INVALID_ENV, "interface name is too long");
	f->request.path = "/x";
	succeed(f, "GC", CONF("1.1.0"));
	assert_calls("GC c1 0123456789abcdef netns=/nowhere made=;");
}

static void unknown_verb(void **state)
{
	struct fixture *f = *state;

	refuse(f, "add", CONF("1.0.0"), HW_CNI_INVALID_ENV, "unknown CNI_COMMAND: add");
	refuse(f, "add", "{\"name\":\"\"}", HW_CNI_INVALID_CONFIG, "missing network name");
}

static void version(void **state)
{
	static const char *const two[] = { "0.3.1", "0.4.0", NULL };
	struct fixture *f = *state;

	f->request = (struct skel_request){ 0 };
	succeed(f, "VERSION", "garbage");
	assert_string_equal(f->reply.output,
			    "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.1.0\",\"0.2.0\","
			    "\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n");
	plugin.versions = two;
	succeed(f, "VERSION", "");
	assert_string_equal(f->reply.output, "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":"
					     "[\"0.3.1\",\"0.4.0\"]}\n");
	assert_false(skel_wants_input(&f->request));
}

/* ---- the configuration -------------------------------------------------------- */

static void bad_json(void **state)
{
	static const char *const bad[] = { "", "{", "[]", "\"x\"", "{\"name\":3}" };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(call(f, "ADD", bad[i]), -1);
		assert_int_equal(hw_err_wire(&f->e), HW_CNI_DECODE_FAILURE);
		assert_starts(f->e.msg, "error unmarshall network config: ");
	}
	assert_calls("");
}

static void bad_names(void **state)
{
	struct fixture *f = *state;

	refuse(f, "DEL", "{}", HW_CNI_INVALID_CONFIG, "missing network name");
	refuse(f, "DEL", "null", HW_CNI_INVALID_CONFIG, "missing network name");
	refuse(f, "DEL", "{\"name\":null}", HW_CNI_INVALID_CONFIG, "missing network name");
	refuse(f, "GC", "{\"name\":\"a b\"}", HW_CNI_INVALID_CONFIG,
	       "invalid characters found in network name");
	assert_string_equal(f->e.details, "a b");
}

static void bad_versions(void **state)
{
	static const char *const old[] = { "0.1.0", "0.2.0", NULL };
	struct fixture *f = *state;

	assert_int_equal(call(f, "ADD", "{\"name\":\"n\",\"cniVersion\":1}"), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_DECODE_FAILURE);
	assert_starts(f->e.msg, "decoding version from network config: ");
	refuse(f, "DEL", CONF("0.9.0"), HW_CNI_INCOMPATIBLE_VERSION, "incompatible CNI versions");
	assert_string_equal(f->e.details,
			    "config is \"0.9.0\", plugin supports [\"0.1.0\" \"0.2.0\" \"0.3.0\" "
			    "\"0.3.1\" \"0.4.0\" \"1.0.0\" \"1.1.0\"]");
	refuse(f, "CHECK", CONF("0.3.1"), HW_CNI_INCOMPATIBLE_VERSION,
	       "config version does not allow CHECK");
	refuse(f, "GC", CONF("1.0.0"), HW_CNI_INCOMPATIBLE_VERSION,
	       "config version does not allow GC");
	refuse(f, "STATUS", "{\"name\":\"n\"}", HW_CNI_INCOMPATIBLE_VERSION,
	       "config version does not allow STATUS");
	assert_int_equal(call(f, "CHECK", CONF("x")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_DECODE_FAILURE);
	plugin.versions = old;
	refuse(f, "CHECK", CONF("0.4.0"), HW_CNI_INCOMPATIBLE_VERSION,
	       "plugin version does not allow CHECK");
	assert_calls("");
}

static void no_version(void **state)
{
	struct fixture *f = *state;

	probe.address = true;
	succeed(f, "ADD", "{\"name\":\"net\"}");
	assert_string_equal(f->reply.output, "{\n    \"cniVersion\": \"0.1.0\",\n    \"ip4\": {\n"
					     "        \"ip\": \"192.0.2.1/24\"\n    },\n"
					     "    \"dns\": {}\n}");
}

static void bad_field(void **state)
{
	struct fixture *f = *state;

	succeed(f, "DEL", "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"Number\":8}");
	assert_int_equal(probe.number, 8);
	assert_int_equal(call(f, "ADD",
			      "{\"cniVersion\":\"1.0.0\",\"name\":\"net\","
			      "\"number\":\"8\"}"),
			 -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_INVALID_CONFIG);
	assert_starts(f->e.msg, "failed to load netconf: ");
	assert_contains(f->e.msg, "number");
}

/* ---- verbs ---------------------------------------------------------------------- */

static void no_verb(void **state)
{
	struct fixture *f = *state;

	plugin.add = plugin.del = plugin.check = plugin.gc = plugin.status = NULL;
	for (const char *const *verb =
		     (const char *const[]){ "ADD", "DEL", "CHECK", "GC", "STATUS", NULL };
	     *verb; verb++) {
		succeed(f, *verb, CONF("1.1.0"));
		assert_null(f->reply.output);
	}
}

static void prints_result(void **state)
{
	struct fixture *f = *state;

	probe.address = true;
	succeed(f, "ADD", CONF("1.0.0"));
	assert_string_equal(f->reply.output,
			    "{\n    \"cniVersion\": \"1.0.0\",\n    \"ips\": [\n        {\n"
			    "            \"address\": \"192.0.2.1/24\"\n        }\n    ]\n}");
	succeed(f, "DEL", CONF("1.0.0"));
	assert_null(f->reply.output);
}

#define WITH_PREV(version, prev)                                                                   \
	"{\"cniVersion\":\"" version "\",\"name\":\"net\",\"prevResult\":" prev "}"

static void passes_prev_on(void **state)
{
	struct fixture *f = *state;

	succeed(f, "ADD", WITH_PREV("0.4.0", "{\"interfaces\":[{\"name\":\"x\"}]}"));
	assert_true(probe.prev_given);
	assert_string_equal(f->reply.output,
			    "{\n    \"cniVersion\": \"0.4.0\",\n    \"interfaces\": [\n"
			    "        {\n            \"name\": \"x\"\n        }\n    ],\n"
			    "    \"dns\": {}\n}");
	succeed(f, "ADD", WITH_PREV("0.4.0", "null"));
	assert_false(probe.prev_given);
}

static void bad_prev(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call(f, "ADD", WITH_PREV("1.0.0", "{\"cniVersion\":\"0.2.0\"}")), -1);
	assert_contains(f->e.msg, "could not parse prevResult");
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_INTERNAL);
	assert_calls("");
	succeed(f, "DEL", WITH_PREV("1.0.0", "{\"ips\":7}"));
	assert_false(probe.prev_given);
	assert_calls("DEL c1 eth0 netns=/nowhere made=;");
}

static void callback_errors(void **state)
{
	struct fixture *f = *state;

	refuse(f, "CHECK", CONF("1.0.0"), 123, "not as it was");
	assert_string_equal(f->reply.output,
			    "{\n    \"code\": 123,\n    \"msg\": \"not as it was\",\n"
			    "    \"details\": \"lo is down\"\n}");
	probe.del_fails = EIO;
	refuse(f, "DEL", CONF("1.0.0"), HW_CNI_INTERNAL, "del failed");
}

static int verbatim(struct hw_call *call, struct hw_err *e)
{
	(void)e;
	call->reply = str_copy("as it is");
	call->exit_status = 7;
	return 0;
}

static void own_reply(void **state)
{
	struct fixture *f = *state;

	plugin.add = plugin.status = verbatim;
	assert_int_equal(call(f, "ADD", CONF("1.1.0")), 0);
	assert_string_equal(f->reply.output, "as it is");
	assert_int_equal(f->reply.status, 7);
	assert_int_equal(call(f, "STATUS", CONF("1.1.0")), 0);
	assert_string_equal(f->reply.output, "as it is");
}

static void undone(void **state)
{
	struct fixture *f = *state;

	probe.add_fails = EBUSY;
	refuse(f, "ADD", CONF("1.0.0"), HW_CNI_INTERNAL, "add failed");
	assert_string_equal(f->e.details, "");
	assert_calls("ADD c1 eth0 netns=/nowhere made=;undo c1 eth0 netns=/nowhere made=;");
	probe.del_fails = EIO;
	refuse(f, "ADD", CONF("1.0.0"), HW_CNI_INTERNAL, "add failed");
	assert_string_equal(f->e.details, "undo also failed: del failed");
}

static void cannot_be_said(void **state)
{
	struct fixture *f = *state;

	refuse(f, "ADD", CONF("0.2.0"), HW_CNI_INTERNAL, "cannot convert: no valid IP addresses");
	assert_calls("ADD c1 eth0 netns=/nowhere made=;undo c1 eth0 netns=/nowhere made=;");
}

static void own_netns(void **state)
{
	static const char msg[] = "plugin's netns and netns from CNI_NETNS should not be the same";
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	refuse(f, "ADD", CONF("1.0.0"), HW_CNI_INVALID_NETNS, msg);
	refuse(f, "DEL", CONF("1.0.0"), HW_CNI_INVALID_NETNS, msg);
	assert_calls("");
	f->request.netns_override = "0";
	refuse(f, "ADD", CONF("1.0.0"), HW_CNI_INVALID_NETNS, msg);
	f->request.netns_override = "True";
	succeed(f, "ADD", CONF("1.0.0"));
	f->request.netns_override = "1";
	succeed(f, "DEL", CONF("1.0.0"));
	assert_calls("ADD c1 eth0 netns=" OWN_NETNS " made=;DEL c1 eth0 netns=" OWN_NETNS
		     " made=;");
}

#define WITH_VALID(list)                                                                           \
	"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"cni.dev/valid-attachments\":" list "}"

static void valid_list(void **state)
{
	struct fixture *f = *state;

	succeed(f, "GC", WITH_VALID("[{\"containerID\":\"a\",\"ifname\":\"b\"},{}]"));
	assert_int_equal(probe.n_valid, 2);
	succeed(f, "GC", WITH_VALID("null"));
	assert_true(probe.valid_given);
	assert_int_equal(probe.n_valid, 0);
	succeed(f, "GC", CONF("1.1.0"));
	assert_false(probe.valid_given);
	assert_int_equal(call(f, "GC", WITH_VALID("{}")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_INVALID_CONFIG);
}

/* ---- records -------------------------------------------------------------------- */

static int setup_recorded(void **state)
{
	int r = setup(state);

	plugin.record = true;
	plugin.gc = NULL;
	probe.save = "veth1";
	return r;
}

static bool has_record(const struct fixture *f, const char *container_id, struct record *ret)
{
	struct record r = { 0 };
	struct hw_err e;

	int found = record_read(f->place->state, "probe", "net", container_id, "eth0", &r, &e);
	if (found < 0)
		fail_msg("%s", e.msg);
	if (ret)
		*ret = r;
	else
		record_done(&r);
	return found;
}

static void change_record(const struct fixture *f, const char *container_id,
			  void (*change)(struct record *r))
{
	AUTO(record_done) struct record r = { 0 };
	struct hw_err e;

	assert_true(has_record(f, container_id, &r));
	change(&r);
	assert_ok(record_write(f->place->state, &r, &e), e);
}

static void set_unfinished(struct record *r)
{
	r->finished = 0;
}

static void set_in_future(struct record *r)
{
	r->finished = time_boot() + 3600 * 1000000000LL;
}

static void set_boot(struct record *r)
{
	free(r->boot);
	r->boot = str_copy("another");
}

static void set_own_netns(struct record *r)
{
	free(r->netns);
	r->netns = str_copy(OWN_NETNS);
}

static void add(struct fixture *f, const char *container_id)
{
	f->request.container_id = container_id;
	succeed(f, "ADD", CONF("1.1.0"));
	f->request.container_id = "c1";
	free(take_ptr(probe.calls));
}

static void recorded(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = *state;

	f->request.args = "A=b";
	succeed(f, "ADD", CONF("1.1.0"));
	assert_true(has_record(f, "c1", &r));
	assert_string_equal(r.made, "{\"link\":\"veth1\"}");
	assert_string_equal(r.config, CONF("1.1.0"));
	assert_string_equal(r.args, "A=b");
	assert_true(r.started > 0 && r.finished >= r.started);
	succeed(f, "DEL", CONF("1.1.0"));
	assert_false(has_record(f, "c1", NULL));
	assert_calls("ADD c1 eth0 netns=/nowhere made=;DEL c1 eth0 netns= made=veth1;");
	succeed(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns=/nowhere made=;");
}

static void del_netns(void **state)
{
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	add(f, "c1");
	succeed(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth1;");
	add(f, "c1");
	f->request.netns = "/proc/self/ns/pid";
	succeed(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
	succeed(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns=/proc/self/ns/pid made=;");
}

static void check_sees_record(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	assert_int_equal(call(f, "CHECK", CONF("1.1.0")), -1);
	assert_calls("CHECK c1 eth0 netns=/nowhere made=veth1;");
}

static void failed_add(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = *state;

	probe.add_fails = EIO;
	refuse(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_calls("ADD c1 eth0 netns=/nowhere made=;undo c1 eth0 netns=/nowhere made=veth1;");
	assert_false(has_record(f, "c1", NULL));
	probe.del_fails = EIO;
	refuse(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_true(has_record(f, "c1", &r));
	assert_int_equal(r.finished, 0);
	assert_string_equal(r.made, "{\"link\":\"veth1\"}");
}

/* Where the plugin never says what it makes, it may have made anything. */
static void nothing_saved(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = *state;

	probe.save = NULL;
	probe.add_fails = probe.del_fails = EIO;
	refuse(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_false(has_record(f, "c1", NULL));
	plugin.made_fields = NULL;
	refuse(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_true(has_record(f, "c1", &r));
	assert_int_equal(r.finished, 0);
}

static void failed_del(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	probe.del_fails = EIO;
	refuse(f, "DEL", CONF("1.1.0"), HW_CNI_INTERNAL, "del failed");
	assert_true(has_record(f, "c1", NULL));
}

static void twice(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = *state;

	add(f, "c1");
	probe.save = "veth2";
	probe.add_fails = EEXIST;
	refuse(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_calls("ADD-again c1 eth0 netns=/nowhere made=;");
	assert_true(has_record(f, "c1", &r));
	assert_string_equal(r.made, "{\"link\":\"veth1\"}");
	assert_true(r.finished > 0);
	record_done(&r);
	probe.add_fails = 0;
	succeed(f, "ADD", CONF("1.1.0"));
	assert_true(has_record(f, "c1", &r));
	assert_string_equal(r.made, "{\"link\":\"veth2\"}");
}

static void after_a_crash(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	change_record(f, "c1", set_unfinished);
	probe.save = "veth2";
	succeed(f, "ADD", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;ADD c1 eth0 netns=/nowhere made=;");
	change_record(f, "c1", set_boot);
	probe.del_fails = EIO;
	refuse(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL,
	       "end container c1 interface eth0: del failed");
	assert_calls("DEL c1 eth0 netns= made=veth2;");
	assert_true(has_record(f, "c1", NULL));
}

static void cannot_write(void **state)
{
	struct fixture *f = *state;

	plugin.made_fields = NULL;
	place_write(f->place, "state", "a file", 0600);
	assert_int_equal(call(f, "ADD", CONF("1.1.0")), -1);
	assert_calls("");
}

static void gc_ends_invalid(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	add(f, "c2");
	succeed(f, "GC",
		WITH_VALID("[{\"containerID\":\"c1\",\"ifname\":\"eth0\"},"
			   "{\"containerID\":\"c2\",\"ifname\":\"eth1\"}]"));
	assert_calls("DEL c2 eth0 netns= made=veth1;");
	assert_true(has_record(f, "c1", NULL));
	assert_false(has_record(f, "c2", NULL));
}

static void gc_keeps_since(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	change_record(f, "c1", set_in_future);
	succeed(f, "GC", WITH_VALID("[]"));
	assert_calls("");
	assert_true(has_record(f, "c1", NULL));
}

static void gc_without_list(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	add(f, "c2");
	change_record(f, "c2", set_unfinished);
	succeed(f, "GC", CONF("1.1.0"));
	assert_calls("DEL c2 eth0 netns= made=veth1;");
}

static void gc_other_boot(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	change_record(f, "c1", set_in_future);
	change_record(f, "c1", set_boot);
	succeed(f, "GC", WITH_VALID("[{\"containerID\":\"c1\",\"ifname\":\"eth0\"}]"));
	assert_calls("");
	succeed(f, "GC", WITH_VALID("[]"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
}

static void gc_netns(void **state)
{
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	add(f, "c1");
	succeed(f, "GC", WITH_VALID("[]"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth1;");
	f->request.netns = "/proc/self/ns/pid";
	add(f, "c1");
	change_record(f, "c1", set_own_netns);
	succeed(f, "GC", WITH_VALID("[]"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
}

static void gc_goes_on(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	add(f, "c2");
	plugin.gc = probe_gc;
	probe.del_fails = EIO;
	assert_int_equal(call(f, "GC", WITH_VALID("[]")), -1);
	assert_contains(f->e.msg, "end container c1 interface eth0: del failed");
	assert_contains(f->e.msg, "end container c2 interface eth0: del failed");
	assert_contains(probe.calls, "DEL c1 ");
	assert_contains(probe.calls, "DEL c2 ");
	assert_contains(probe.calls, "GC ");
	probe.own_gc_fails = EIO;
	assert_int_equal(call(f, "GC", WITH_VALID("[]")), -1);
	assert_contains(f->e.msg, ": del failed\ngc failed");
	probe.del_fails = 0;
	refuse(f, "GC", WITH_VALID("[]"), HW_CNI_INTERNAL, "gc failed");
	assert_false(has_record(f, "c1", NULL));
}

static void gc_waits(void **state)
{
	struct fixture *f = *state;
	autoclose int lock = -1;
	struct hw_err e;

	add(f, "c1");
	assert_ok(lock_take(f->place->state, "net", "probe", false, TIME_NEVER, &lock, &e), e);
	assert_int_equal(call(f, "GC", WITH_VALID("[]")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_TRY_AGAIN);
	succeed(f, "DEL", CONF("1.1.0"));
	close(take_fd(lock));
	assert_ok(lock_take(f->place->state, "net", "probe", true, TIME_NEVER, &lock, &e), e);
	assert_int_equal(call(f, "ADD", CONF("1.1.0")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_TRY_AGAIN);
}

static void others_may_write(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	assert_int_equal(chmod(f->place->state, 0777), 0);
	for (const char *const *verb = (const char *const[]){ "ADD", "DEL", "CHECK", "GC", NULL };
	     *verb; verb++) {
		assert_int_equal(call(f, *verb, WITH_VALID("[]")), -1);
		assert_contains(f->e.msg, "can be written by others");
	}
	assert_calls("");
}

/* Such a plugin has nothing to remove, but its records end all the same. */
static void recorded_without_del(void **state)
{
	struct fixture *f = *state;

	plugin.del = NULL;
	add(f, "c1");
	succeed(f, "DEL", CONF("1.1.0"));
	assert_false(has_record(f, "c1", NULL));
	add(f, "c1");
	change_record(f, "c1", set_unfinished);
	add(f, "c1");
	succeed(f, "GC", WITH_VALID("[]"));
	assert_false(has_record(f, "c1", NULL));
}

static void no_record_kept(void **state)
{
	struct fixture *f = *state;

	probe.address = true;
	succeed(f, "ADD", CONF("1.1.0"));
	succeed(f, "DEL", CONF("1.1.0"));
	assert_false(place_has(f->place, "state"));
}

#define TEST(sentence, f)                                                                          \
	{                                                                                          \
		sentence, f, setup, teardown, NULL                                                 \
	}
#define RECORDED(sentence, f)                                                                      \
	{                                                                                          \
		sentence, f, setup_recorded, teardown, NULL                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("skel: without a command a plugin says what it is", about),
		TEST("skel: all missing variables are named, by what the verb needs",
		     missing_variables),
		TEST("skel: a wrong variable is reported before a missing one", wrong_variables),
		TEST("skel: an unknown verb is refused after the configuration was looked at",
		     unknown_verb),
		TEST("skel: VERSION needs no environment and no input", version),
		TEST("skel: what is not a JSON object is code 6", bad_json),
		TEST("skel: a network has a name of allowed characters", bad_names),
		TEST("skel: a version must allow the verb and be supported", bad_versions),
		TEST("skel: no version is 0.1.0", no_version),
		TEST("skel: a wrong type in the configuration is code 7 and names the key",
		     bad_field),
		TEST("skel: a verb that the plugin lacks succeeds and prints nothing", no_verb),
		TEST("skel: ADD prints the result in the version asked for, DEL nothing",
		     prints_result),
		TEST("skel: prevResult is what the result starts from", passes_prev_on),
		TEST("skel: a bad prevResult stops ADD but not DEL", bad_prev),
		TEST("skel: a plugin's error keeps its code and details, others are 999",
		     callback_errors),
		TEST("skel: a plugin's own reply is printed as it is", own_reply),
		TEST("skel: a failed ADD is undone, and its error is the one reported", undone),
		TEST("skel: an ADD whose result the version cannot say is undone", cannot_be_said),
		TEST("skel: the plugin's own netns is refused before anything is done", own_netns),
		TEST("skel: GC gets the list of valid attachments, or none", valid_list),
		TEST("skel: a plugin without records writes nothing", no_record_kept),
		RECORDED("attach: a record is there from ADD to DEL", recorded),
		RECORDED("attach: CHECK sees what the record says", check_sees_record),
		RECORDED("attach: a failed ADD leaves a record only when its undo failed",
			 failed_add),
		RECORDED("attach: a plugin that says what it makes is written down when it does",
			 nothing_saved),
		RECORDED("attach: a failed DEL keeps the record", failed_del),
		RECORDED("attach: DEL believes a netns path only while it is the same namespace",
			 del_netns),
		RECORDED("attach: a second ADD that fails leaves the first one alone", twice),
		RECORDED("attach: ADD ends what a dead ADD left, first", after_a_crash),
		RECORDED("attach: an ADD that cannot be written down does nothing", cannot_write),
		RECORDED("attach: GC ends what is not valid and keeps the rest", gc_ends_invalid),
		RECORDED("attach: GC keeps what finished after it was called", gc_keeps_since),
		RECORDED("attach: GC without a list ends only dead ADDs", gc_without_list),
		RECORDED("attach: GC ends records of another boot unless valid", gc_other_boot),
		RECORDED("attach: GC believes a netns path only while it is the same namespace",
			 gc_netns),
		RECORDED("attach: GC goes on after an error and reports all of them", gc_goes_on),
		RECORDED("attach: GC and ADD exclude each other, with code 11", gc_waits),
		RECORDED("attach: records that others may have written are not believed",
			 others_may_write),
		RECORDED("attach: a plugin with records needs no DEL", recorded_without_del),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
