/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-attach.c - attachments and their records
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
	assert_ok(lock_acquire(f->place->state, "net", "probe", false, TIME_NEVER, &lock, &e), e);
	assert_int_equal(call(f, "GC", WITH_VALID("[]")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_TRY_AGAIN);
	succeed(f, "DEL", CONF("1.1.0"));
	close(take_fd(lock));
	assert_ok(lock_acquire(f->place->state, "net", "probe", true, TIME_NEVER, &lock, &e), e);
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

/* ---- repair ------------------------------------------------------------------------- */

static const struct hw_plugin *const plugins[] = { &plugin, NULL };
static struct fixture *repaired;

static void set_other_link(struct record *r)
{
	free(r->made);
	r->made = str_copy("{\"link\":\"veth2\"}");
}

static int probe_repair(struct hw_call *call, struct hw_err *e)
{
	(void)e;
	probe_note(call, "repair");
	return 0;
}

/* As if an ADD on top of c2's came by while c1 is being repaired */
static int repair_slowly(struct hw_call *call, struct hw_err *e)
{
	if (str_equal(call->container_id, "c1"))
		change_record(repaired, "c2", set_other_link);
	return probe_repair(call, e);
}

static void repair(struct fixture *f, int wanted)
{
	struct errors errors = { 0 };
	struct hw_err e;

	assert_int_equal(attach_repair(plugins, f->place->state, &errors), wanted);
	assert_ok(errors_end(&errors, &e), e);
}

static void repair_reads_late(void **state)
{
	struct fixture *f = repaired = *state;

	plugin.repair = repair_slowly;
	add(f, "c1");
	add(f, "c2");
	repair(f, 2);
	assert_calls("repair c1 eth0 netns= made=veth1;repair c2 eth0 netns= made=veth2;");
}

/* What the record says while an ADD is on top of another */
static int note_earlier(struct hw_call *call, struct hw_err *e)
{
	AUTO(record_done) struct record r = { 0 };
	int ret = probe_add(call, e);

	assert_true(has_record(repaired, "c1", &r));
	assert_int_equal(r.finished, 0);
	assert_int_equal(r.earlier > 0, call->earlier != NULL);
	return ret;
}

static void set_on_top(struct record *r)
{
	r->earlier = r->finished;
	r->finished = 0;
}

static void killed_on_top(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct fixture *f = repaired = *state;

	plugin.repair = probe_repair;
	plugin.add = note_earlier;
	add(f, "c1");
	add(f, "c1");
	assert_true(has_record(f, "c1", &r));
	assert_int_equal(r.earlier, 0);
	change_record(f, "c1", set_on_top);
	repair(f, 1);
	assert_calls("repair c1 eth0 netns= made=veth1;");
	succeed(f, "GC", CONF("1.1.0"));
	assert_true(has_record(f, "c1", NULL));
	change_record(f, "c1", set_unfinished);
	succeed(f, "GC", WITH_VALID("[]"));
	assert_false(has_record(f, "c1", NULL));
}

static void repair_living_first(void **state)
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
		TEST("attach: a record is there from ADD to DEL", recorded),
		TEST("attach: CHECK sees what the record says", check_sees_record),
		TEST("attach: a failed ADD leaves a record only when its undo failed", failed_add),
		TEST("attach: a plugin that says what it makes is written down when it does",
		     nothing_saved),
		TEST("attach: a failed DEL keeps the record", failed_del),
		TEST("attach: DEL believes a netns path only while it is the same namespace",
		     del_netns),
		TEST("attach: a second ADD that fails leaves the first one alone", twice),
		TEST("attach: ADD ends what a dead ADD left, first", after_a_crash),
		TEST("attach: an ADD that cannot be written down does nothing", cannot_write),
		TEST("attach: GC ends what is not valid and keeps the rest", gc_ends_invalid),
		TEST("attach: GC keeps what finished after it was called", gc_keeps_since),
		TEST("attach: GC without a list ends only dead ADDs", gc_without_list),
		TEST("attach: GC ends records of another boot unless valid", gc_other_boot),
		TEST("attach: GC believes a netns path only while it is the same namespace",
		     gc_netns),
		TEST("attach: GC goes on after an error and reports all of them", gc_goes_on),
		TEST("attach: GC and ADD exclude each other, with code 11", gc_waits),
		TEST("attach: records that others may have written are not believed",
		     others_may_write),
		TEST("attach: a plugin with records needs no DEL", recorded_without_del),
		TEST("attach: repair goes by what a record says when it is its turn",
		     repair_reads_late),
		TEST("attach: a pod whose second ADD was killed is repaired, and kept without a "
		     "list",
		     killed_on_top),
		TEST("attach: repair begins with the living and ends with the newest",
		     repair_living_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
