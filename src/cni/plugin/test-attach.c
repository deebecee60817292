/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-attach.c - tests of attachment records, undo and GC
 */
#include "cni/plugin/attach.h"

#include "cni/plugin/test-probe.h"

#include "base/time.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"

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

	int found = record_read(f->place->state, "probe", "net", container_id, "eth0", "", &r, &e);
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

static void set_other_boot(struct record *r)
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
	expect_success(f, "ADD", CONF("1.1.0"));
	f->request.container_id = "c1";
	free(take_ptr(probe.calls));
}

static void record_from_add_to_del(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = *state;

	f->request.args = "A=b";
	expect_success(f, "ADD", CONF("1.1.0"));
	assert_true(has_record(f, "c1", &r));
	assert_string_equal(r.created, "{\"link\":\"veth1\"}");
	assert_string_equal(r.config, CONF("1.1.0"));
	assert_string_equal(r.args, "A=b");
	assert_true(r.started > 0 && r.finished >= r.started);
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_false(has_record(f, "c1", NULL));
	assert_calls("ADD c1 eth0 netns=/nowhere made=;DEL c1 eth0 netns= made=veth1;");
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns=/nowhere made=;");
}

static void del_netns(void **state)
{
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	add(f, "c1");
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth1;");
	add(f, "c1");
	f->request.netns = "/proc/self/ns/pid";
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
	expect_success(f, "DEL", CONF("1.1.0"));
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
	expect_error(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_calls("ADD c1 eth0 netns=/nowhere made=;undo c1 eth0 netns=/nowhere made=veth1;");
	assert_false(has_record(f, "c1", NULL));
	probe.del_fails = EIO;
	expect_error(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_true(has_record(f, "c1", &r));
	assert_int_equal(r.finished, 0);
	assert_string_equal(r.created, "{\"link\":\"veth1\"}");
}

/* Without .created_fields the plugin may have created anything, so the record is written first. */
static void record_before_add(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = *state;

	probe.save = NULL;
	probe.add_fails = probe.del_fails = EIO;
	expect_error(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_false(has_record(f, "c1", NULL));
	plugin.created_fields = NULL;
	expect_error(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL, "add failed");
	assert_true(has_record(f, "c1", &r));
	assert_int_equal(r.finished, 0);
}

static void failed_del(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	probe.del_fails = EIO;
	expect_error(f, "DEL", CONF("1.1.0"), HW_CNI_INTERNAL, "del failed");
	assert_true(has_record(f, "c1", NULL));
}

static void second_add_is_refused(void **state)
{
	AUTO(record_done) struct record first = { 0 }, r = { 0 };
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	add(f, "c1");
	assert_true(has_record(f, "c1", &first));
	probe.save = "veth2";
	for (const char *const *netns = (const char *const[]){ OWN_NETNS, "/nowhere", NULL };
	     *netns; netns++) {
		f->request.netns = *netns;
		expect_error(f, "ADD", CONF("1.1.0"), HW_CNI_ALREADY_ATTACHED,
			     "plugin probe: container c1 interface eth0 is already attached to "
			     "network net; call DEL first");
		assert_calls("");
		assert_true(has_record(f, "c1", &r));
		assert_string_equal(r.created, "{\"link\":\"veth1\"}");
		assert_string_equal(r.netns, OWN_NETNS);
		assert_int_equal(r.finished, first.finished);
		record_done(&r);
	}
	expect_success(f, "DEL", CONF("1.1.0"));
	expect_success(f, "ADD", CONF("1.1.0"));
}

#define ENTRY(n)                                                                                   \
	"{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"probe\",\"n\":" n ","               \
	"\"prevResult\":{\"cniVersion\":\"1.1.0\"}}"

/* A network's list may contain a plugin type several times, with different configurations. */
static void same_plugin_twice(void **state)
{
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	expect_success(f, "ADD", ENTRY("1"));
	probe.save = "veth2";
	expect_success(f, "ADD", ENTRY("2"));
	free(take_ptr(probe.calls));
	for (const char *const *conf = (const char *const[]){ ENTRY("1"), ENTRY("2"), NULL }; *conf;
	     conf++)
		expect_error(f, "ADD", *conf, HW_CNI_ALREADY_ATTACHED,
			     "plugin probe: container c1 interface eth0 is already attached to "
			     "network net; call DEL first");
	assert_calls("");
	expect_success(f, "DEL", ENTRY("2"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth2;");
	assert_true(has_record(f, "c1", NULL));
	expect_success(f, "DEL", ENTRY("1"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth1;");
	assert_false(has_record(f, "c1", NULL));
	/* GC deletes both, and DEL in the wrong order finds each one, too */
	expect_success(f, "ADD", ENTRY("1"));
	expect_success(f, "ADD", ENTRY("2"));
	expect_success(f, "DEL", ENTRY("1"));
	free(take_ptr(probe.calls));
	expect_success(f, "DEL", ENTRY("2"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth2;");
	expect_success(f, "ADD", ENTRY("1"));
	expect_success(f, "ADD", ENTRY("2"));
	free(take_ptr(probe.calls));
	expect_success(f, "GC", WITH_VALID("[]"));
	expect_success(f, "GC", WITH_VALID("[]"));
	assert_non_null(probe.calls);
	assert_non_null(strstr(strstr(probe.calls, "DEL") + 1, "DEL"));
	assert_null(strstr(strstr(strstr(probe.calls, "DEL") + 1, "DEL") + 1, "DEL"));
}

/* The pod ended without a DEL: the recorded path no longer exists, or leads elsewhere. */
static void add_after_dead_pod(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	probe.save = "veth2";
	f->request.netns = "/proc/self/ns/pid";
	expect_success(f, "ADD", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;ADD c1 eth0 netns=/proc/self/ns/pid made=;");
	change_record(f, "c1", set_own_netns);
	expect_success(f, "ADD", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth2;ADD c1 eth0 netns=/proc/self/ns/pid made=;");
}

static void set_other_cookie(struct record *r)
{
	r->netns_cookie++;
}

static void set_no_cookie(struct record *r)
{
	r->netns_cookie = 0;
}

/* A new namespace may have the path and the inode number of a dead pod's namespace. */
static void reused_inode(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	add(f, "c1");
	assert_true(has_record(f, "c1", &r));
	if (!r.netns_cookie) {
		print_message("skip: not allowed to enter a network namespace\n");
		skip();
	}
	change_record(f, "c1", set_other_cookie);
	expect_success(f, "ADD", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;ADD c1 eth0 netns=" OWN_NETNS " made=;");
	change_record(f, "c1", set_other_cookie);
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
	add(f, "c1");
	change_record(f, "c1", set_no_cookie);
	assert_int_equal(call(f, "ADD", CONF("1.1.0")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_ALREADY_ATTACHED);
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth1;");
}

static void after_a_crash(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	change_record(f, "c1", set_unfinished);
	probe.save = "veth2";
	expect_success(f, "ADD", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;ADD c1 eth0 netns=/nowhere made=;");
	change_record(f, "c1", set_other_boot);
	probe.del_fails = EIO;
	expect_error(f, "ADD", CONF("1.1.0"), HW_CNI_INTERNAL,
		     "delete attachment of container c1 interface eth0: del failed");
	assert_calls("DEL c1 eth0 netns= made=veth2;");
	assert_true(has_record(f, "c1", NULL));
}

static void set_created_by_0_1(struct record *r)
{
	free(r->created);
	r->created = str_copy("{\"link\":\"veth1\",\"earlier\":{\"link\":\"veth0\"}}");
}

/* Version 0.1.0 wrote the key "earlier". */
static void unknown_key(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	change_record(f, "c1", set_created_by_0_1);
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
	assert_false(has_record(f, "c1", NULL));
}

static void record_cannot_be_written(void **state)
{
	struct fixture *f = *state;

	place_write(f->place, "state", "a file", 0600);
	assert_int_equal(call(f, "ADD", CONF("1.1.0")), -1);
	assert_calls("");
}

static void gc_deletes_invalid(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	add(f, "c2");
	expect_success(f, "GC",
		       WITH_VALID("[{\"containerID\":\"c1\",\"ifname\":\"eth0\"},"
				  "{\"containerID\":\"c2\",\"ifname\":\"eth1\"}]"));
	assert_calls("DEL c2 eth0 netns= made=veth1;");
	assert_true(has_record(f, "c1", NULL));
	assert_false(has_record(f, "c2", NULL));
}

static void gc_keeps_newer(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	change_record(f, "c1", set_in_future);
	expect_success(f, "GC", WITH_VALID("[]"));
	assert_calls("");
	assert_true(has_record(f, "c1", NULL));
}

static void gc_without_list(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	add(f, "c2");
	change_record(f, "c2", set_unfinished);
	expect_success(f, "GC", CONF("1.1.0"));
	assert_calls("DEL c2 eth0 netns= made=veth1;");
}

static void gc_other_boot(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	change_record(f, "c1", set_in_future);
	change_record(f, "c1", set_other_boot);
	expect_success(f, "GC", WITH_VALID("[{\"containerID\":\"c1\",\"ifname\":\"eth0\"}]"));
	assert_calls("");
	expect_success(f, "GC", WITH_VALID("[]"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
}

static void gc_netns(void **state)
{
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	add(f, "c1");
	expect_success(f, "GC", WITH_VALID("[]"));
	assert_calls("DEL c1 eth0 netns=" OWN_NETNS " made=veth1;");
	f->request.netns = "/proc/self/ns/pid";
	add(f, "c1");
	change_record(f, "c1", set_own_netns);
	expect_success(f, "GC", WITH_VALID("[]"));
	assert_calls("DEL c1 eth0 netns= made=veth1;");
}

static void gc_continues(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	add(f, "c2");
	plugin.gc = probe_gc;
	probe.del_fails = EIO;
	assert_int_equal(call(f, "GC", WITH_VALID("[]")), -1);
	assert_contains(f->e.msg, "delete attachment of container c1 interface eth0: del failed");
	assert_contains(f->e.msg, "delete attachment of container c2 interface eth0: del failed");
	assert_contains(probe.calls, "DEL c1 ");
	assert_contains(probe.calls, "DEL c2 ");
	assert_contains(probe.calls, "GC ");
	probe.own_gc_fails = EIO;
	assert_int_equal(call(f, "GC", WITH_VALID("[]")), -1);
	assert_contains(f->e.msg, ": del failed\ngc failed");
	probe.del_fails = 0;
	expect_error(f, "GC", WITH_VALID("[]"), HW_CNI_INTERNAL, "gc failed");
	assert_false(has_record(f, "c1", NULL));
}

static void gc_waits(void **state)
{
	struct fixture *f = *state;
	autoclose int lock = -1;
	struct hw_err e;

	add(f, "c1");
	assert_ok(lock_acquire(f->place->state, "net", "probe", false, TIME_NEVER, &lock, &e), e);
	assert_int_equal(call(f, "GC", WITH_VALID("[]")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_TRY_AGAIN);
	expect_success(f, "DEL", CONF("1.1.0"));
	close(take_fd(lock));
	assert_ok(lock_acquire(f->place->state, "net", "probe", true, TIME_NEVER, &lock, &e), e);
	assert_int_equal(call(f, "ADD", CONF("1.1.0")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_TRY_AGAIN);
}

static void attachment_is_locked(void **state)
{
	struct fixture *f = *state;
	autoclose int lock = -1;
	struct hw_err e;

	assert_ok(lock_acquire(f->place->state, "net", "probe", false, TIME_NEVER, &lock, &e), e);
	assert_ok(lock_attachment(lock, "c1", "eth0", TIME_NEVER, &e), e);
	for (const char *const *verb = (const char *const[]){ "ADD", "DEL", NULL }; *verb; verb++)
		expect_error(f, *verb, CONF("1.1.0"), HW_CNI_TRY_AGAIN,
			     "container c1 interface eth0 is busy: timed out waiting for a running "
			     "ADD or DEL");
	assert_calls("");
	add(f, "c2");
	close(take_fd(lock));
	add(f, "c1");
}

static void writable_state_dir(void **state)
{
	struct fixture *f = *state;

	add(f, "c1");
	assert_int_equal(chmod(f->place->state, 0777), 0);
	for (const char *const *verb = (const char *const[]){ "ADD", "DEL", "CHECK", "GC", NULL };
	     *verb; verb++) {
		assert_int_equal(call(f, *verb, WITH_VALID("[]")), -1);
		assert_contains(f->e.msg, "is writable by other users");
	}
	assert_calls("");
}

/* The plugin has nothing to delete, but its records are removed. */
static void recorded_without_del(void **state)
{
	struct fixture *f = *state;

	plugin.del = NULL;
	add(f, "c1");
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_false(has_record(f, "c1", NULL));
	add(f, "c1");
	change_record(f, "c1", set_unfinished);
	add(f, "c1");
	expect_success(f, "GC", WITH_VALID("[]"));
	assert_false(has_record(f, "c1", NULL));
}

/* ---- repair ------------------------------------------------------------------------- */

static const struct hw_plugin *const plugins[] = { &plugin, NULL };
static struct fixture *repair_fixture;

static void set_other_link(struct record *r)
{
	free(r->created);
	r->created = str_copy("{\"link\":\"veth2\"}");
}

static int probe_repair(struct hw_call *call, struct hw_err *e)
{
	(void)e;
	probe_log(call, "repair");
	return 0;
}

/* Simulates an ADD of c2 while c1 is being repaired. */
static int repair_and_change_c2(struct hw_call *call, struct hw_err *e)
{
	if (str_equal(call->container_id, "c1"))
		change_record(repair_fixture, "c2", set_other_link);
	return probe_repair(call, e);
}

static void repair(struct fixture *f, int wanted)
{
	struct errors errors = { 0 };
	struct hw_err e;

	assert_int_equal(attach_repair(plugins, f->place->state, &errors), wanted);
	assert_ok(errors_result(&errors, &e), e);
}

static void repair_reads_record_again(void **state)
{
	struct fixture *f = repair_fixture = *state;

	plugin.repair = repair_and_change_c2;
	add(f, "c1");
	add(f, "c2");
	repair(f, 2);
	assert_calls("repair c1 eth0 netns= made=veth1;repair c2 eth0 netns= made=veth2;");
}

static void repair_existing_netns_first(void **state)
{
	struct fixture *f = *state;

	plugin.repair = probe_repair;
	add(f, "c1");
	f->request.netns = OWN_NETNS;
	f->request.netns_override = "1";
	add(f, "c2");
	repair(f, 2);
	assert_calls("repair c2 eth0 netns=" OWN_NETNS " made=veth1;"
		     "repair c1 eth0 netns= made=veth1;"
		     "repair c2 eth0 netns=" OWN_NETNS " made=veth1;");
}

#define TEST(sentence, f)                                                                          \
	{                                                                                          \
		sentence, f, setup_recorded, teardown, NULL                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("attach: a record exists from ADD to DEL", record_from_add_to_del),
		TEST("attach: CHECK gets the content of the record", check_sees_record),
		TEST("attach: a failed ADD leaves a record only if its undo failed", failed_add),
		TEST("attach: with created_fields the record is written when the plugin saves it",
		     record_before_add),
		TEST("attach: a failed DEL keeps the record", failed_del),
		TEST("attach: DEL uses a netns path only if it still leads to the same namespace",
		     del_netns),
		TEST("attach: an ADD after a finished one is refused and changes nothing",
		     second_add_is_refused),
		TEST("attach: a list with the same plugin twice has a record for each",
		     same_plugin_twice),
		TEST("attach: ADD first deletes the attachment of a pod whose namespace is gone",
		     add_after_dead_pod),
		TEST("attach: a new namespace with the inode number of the old one is recognized",
		     reused_inode),
		TEST("attach: ADD first deletes what an unfinished ADD left behind", after_a_crash),
		TEST("attach: DEL ignores unknown keys of a record", unknown_key),
		TEST("attach: an ADD whose record cannot be written changes nothing and fails",
		     record_cannot_be_written),
		TEST("attach: GC keeps valid attachments and deletes all others",
		     gc_deletes_invalid),
		TEST("attach: GC keeps an attachment whose ADD finished after GC was called",
		     gc_keeps_newer),
		TEST("attach: GC without a list deletes only what unfinished ADDs left behind",
		     gc_without_list),
		TEST("attach: GC deletes attachments of another boot unless they are valid",
		     gc_other_boot),
		TEST("attach: GC uses a netns path only if it still leads to the same namespace",
		     gc_netns),
		TEST("attach: GC continues after an error and reports all errors", gc_continues),
		TEST("attach: ADD and GC wait for each other, and fail with code 11 on timeout",
		     gc_waits),
		TEST("attach: ADD and DEL wait for a call of the same attachment, and fail with "
		     "code 11 on timeout",
		     attachment_is_locked),
		TEST("attach: a state directory that other users can write to is refused",
		     writable_state_dir),
		TEST("attach: the records of a plugin without del() are removed",
		     recorded_without_del),
		TEST("attach: repair reads a record again just before it repairs the attachment",
		     repair_reads_record_again),
		TEST("attach: repair starts with pods whose namespace exists, and repairs the "
		     "newest last",
		     repair_existing_netns_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
