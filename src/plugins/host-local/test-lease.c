/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/test-lease.c - leases and their index, on a directory of one's own
 *
 * What upstream's plugin makes of the same files is in test/host-local.bats.
 */
#include "plugins/host-local/lease.h"

#include "cni/test.h"

#include "plugins/host-local/host-local.h"
#include "plugins/host-local/index.h"

static const struct lease_owner alice = { "alice", "eth0" }, bob = { "bob", "eth0" };

static struct hw_ip ip(const char *text)
{
	struct hw_ip ret;
	struct hw_err e;

	assert_int_equal(hw_ip_parse(text, &ret, &e), 0);
	return ret;
}

static void open_store(const struct place *p, struct lease_store *store)
{
	struct hw_err e;

	assert_ok(lease_open(store, p->dir, "net", LEASE_MAKE, &e), e);
}

static int take(struct lease_store *store, const struct lease_owner *owner, const char *text)
{
	struct hw_ip address = ip(text);
	struct hw_err e;

	int r = lease_take(store, owner, &address, &e);
	if (r < 0)
		fail_msg("%s", e.msg);
	return r;
}

/* "10.1.0.2 10.1.0.3", of all leases or of one owner's by the index */
static char *list(const struct lease_store *store, const struct lease_owner *owner)
{
	AUTO(ip_list_done) struct ip_list l = { 0 };
	AUTO(buf_done) struct buf b = { 0 };
	char text[HW_IP_TEXT];
	struct hw_err e;

	if (owner)
		assert_ok(lease_find(store, owner, &l, &e), e);
	else
		assert_ok(lease_list(store, &l, &e), e);
	for (size_t i = 0; i < l.n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", hw_ip_format(&l.v[i], text));
	return buf_take(&b);
}

static void assert_list(const struct lease_store *store, const struct lease_owner *owner,
			const char *want)
{
	autofree char *got = list(store, owner);

	assert_string_equal(got, want);
}

static void end_all(struct lease_store *store, const struct lease_owner *owner, const char *known)
{
	AUTO(ip_list_done) struct ip_list l = { 0 };
	struct hw_err e;

	if (known) {
		struct hw_ip address = ip(known);
		ip_list_add(&l, &address);
	}
	assert_ok(lease_end_all(store, owner, &l, &e), e);
}

static void take_once(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;

	open_store(*state, &store);
	assert_int_equal(take(&store, &alice, "10.1.0.2"), 0);
	assert_int_equal(take(&store, &bob, "10.1.0.2"), 1);
	assert_int_equal(take(&store, &bob, "fd00::2"), 0);
	assert_list(&store, NULL, "10.1.0.2 fd00::2");
	autofree char *text = place_read(*state, "net/10.1.0.2");
	assert_string_equal(text, "alice\r\neth0");
}

static void find_own(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	struct lease_owner other = { "alice", "eth1" };
	struct hw_ip second = ip("10.1.0.3");
	struct hw_err e;

	open_store(*state, &store);
	take(&store, &alice, "10.1.0.2");
	take(&store, &alice, "10.1.0.3");
	take(&store, &alice, "10.1.0.4");
	take(&store, &other, "10.1.0.5");
	assert_list(&store, &alice, "10.1.0.2 10.1.0.3 10.1.0.4");
	assert_int_equal(lease_end(&store, &other, &second, &e), 0);
	assert_int_equal(lease_end(&store, &alice, &second, &e), 1);
	/* the last took its place, so that there is no gap */
	assert_list(&store, &alice, "10.1.0.2 10.1.0.4");
	end_all(&store, &alice, NULL);
	assert_list(&store, &alice, "");
	assert_list(&store, NULL, "10.1.0.5");
}

/* What others did to the lease behind the index. */
static void believe_the_lease(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;

	open_store(*state, &store);
	take(&store, &alice, "10.1.0.2");
	place_write(*state, "net/10.1.0.2", "bob\r\neth0", 0600);
	assert_list(&store, &alice, "");
	take(&store, &alice, "10.1.0.3");
	assert_list(&store, &alice, "10.1.0.3");
	end_all(&store, &alice, "10.1.0.2");
	assert_list(&store, NULL, "10.1.0.2");
}

static void find_without_index(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;

	open_store(*state, &store);
	lease_close(&store); /* whoever makes leases has the lock */
	place_write(*state, "net/10.1.0.2", "alice\r\neth0", 0600);
	place_write(*state, "net/10.1.0.3", "alice", 0600);
	place_write(*state, "net/10.1.0.4", "", 0600);
	place_write(*state, "net/last_reserved_ip.0", "alice\r\neth0", 0600);
	open_store(*state, &store);
	assert_list(&store, NULL, "10.1.0.2 10.1.0.3 10.1.0.4");
	end_all(&store, &alice, "10.9.0.1"); /* the result knows better: no look */
	assert_list(&store, NULL, "10.1.0.2 10.1.0.3 10.1.0.4");
	end_all(&store, &alice, NULL);
	assert_list(&store, NULL, "10.1.0.3");
	end_all(&store, &alice, NULL);
	assert_list(&store, NULL, "");
	assert_true(place_has(*state, "net/last_reserved_ip.0"));
}

static void stamps(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	struct hw_ip address = ip("10.1.0.2");
	struct hw_err e;

	open_store(*state, &store);
	take(&store, &alice, "10.1.0.2");
	assert_int_equal(index_stamped(store.index, &alice, &address), 0);
	assert_ok(lease_finish(&store, &alice, &e), e);
	assert_true(index_stamped(store.index, &alice, &address) > 0);
}

static void last(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	struct hw_ip a = ip("10.1.0.100"), b = ip("10.1.0.2"), got;
	struct hw_err e;

	open_store(*state, &store);
	assert_int_equal(lease_last(&store, 3).family, 0);
	assert_ok(lease_set_last(&store, 3, &a, &e), e);
	assert_ok(lease_set_last(&store, 3, &b, &e), e);
	got = lease_last(&store, 3);
	assert_true(hw_ip_equal(&got, &b));
	place_write(*state, "net/last_reserved_ip.3", "", 0600);
	assert_int_equal(lease_last(&store, 3).family, 0);
}

static void odd_files(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	struct hw_ip a = ip("10.1.0.2"), b = ip("10.1.0.3"), c = ip("10.1.0.4");
	autofree char *long_text = mem_new(5000);

	open_store(*state, &store);
	memset(long_text, 'a', 4999);
	place_write(*state, "net/10.1.0.2", long_text, 0600);
	assert_int_equal(symlinkat("lock", store.dir, "10.1.0.3"), 0);
	lease_close(&store);
	place_write(*state, "net/10.1.0.4", " \r\n alice\r\neth0 \n", 0600);
	open_store(*state, &store);
	assert_int_equal(lease_match(&store, &a, &alice), LEASE_OTHER);
	assert_int_equal(lease_match(&store, &b, &alice), LEASE_OTHER);
	assert_int_equal(lease_match(&store, &c, &alice), LEASE_WHOLE);
	end_all(&store, &alice, NULL);
	assert_list(&store, NULL, "10.1.0.2 10.1.0.3");
}

static bool keep_nobody(void *ctx, const struct lease_owner *owner)
{
	(void)ctx, (void)owner;
	return false;
}

static void gc_tidies_index(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE, again = LEASE_STORE;
	struct lease_gc gc = { .keep = keep_nobody };
	struct hw_err e;

	open_store(*state, &store);
	take(&store, &alice, "10.1.0.2");
	take(&store, &alice, "10.1.0.3");
	assert_ok(lease_finish(&store, &alice, &e), e);
	assert_int_equal(unlinkat(store.dir, "10.1.0.2", 0), 0);
	lease_close(&store);
	assert_ok(lease_open(&again, ((struct place *)*state)->dir, "net", LEASE_LOOK, &e), e);
	assert_ok(lease_gc(&again, &gc, &e), e);
	assert_list(&again, NULL, "10.1.0.3"); /* nobody said what is valid */
	assert_list(&again, &alice, "10.1.0.3");
	assert_int_equal(lease_has_any(&again, &alice, &e), 1);
	assert_int_equal(lease_has_any(&again, &bob, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST("lease: an address is leased once, in upstream's form", take_once),
		PLACE_TEST("lease: an owner's leases are found by the index, also after one in the "
			   "middle has ended",
			   find_own),
		PLACE_TEST("lease: the index is believed only while the lease agrees",
			   believe_the_lease),
		PLACE_TEST("lease: what the index does not know is found by looking, empty ones go",
			   find_without_index),
		PLACE_TEST("lease: a lease is stamped when its ADD is done, and not before",
			   stamps),
		PLACE_TEST("lease: the last address of a set is remembered; a torn one is none",
			   last),
		PLACE_TEST("lease: white space around a text does not count; odd files are others'",
			   odd_files),
		PLACE_TEST("lease: GC removes entries that lead nowhere, and leaves no gap",
			   gc_tidies_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
