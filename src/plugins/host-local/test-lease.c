/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/test-lease.c - unit tests of leases, their index and GC
 *
 * That upstream's plugin can use the same files is tested in test/plugins/host-local.bats.
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

	assert_ok(lease_open(store, p->dir, "net", LEASE_CREATE, &e), e);
}

static int allocate(struct lease_store *store, const struct lease_owner *owner, const char *text)
{
	struct hw_ip address = ip(text);
	struct hw_err e;

	int r = lease_allocate(store, owner, &address, &e);
	if (r < 0)
		fail_msg("%s", e.msg);
	return r;
}

/* Return: a text such as "10.1.0.2 10.1.0.3": the owner's leases according to the index, or with
 * owner NULL all leases */
static char *format_leases(const struct lease_store *store, const struct lease_owner *owner)
{
	AUTO(ip_list_done) struct ip_list l = { 0 };
	AUTO(buf_done) struct buf b = { 0 };
	char text[HW_IP_TEXT];
	struct hw_err e;

	if (owner)
		assert_ok(lease_list_owned(store, owner, &l, &e), e);
	else
		assert_ok(lease_list_all(store, &l, &e), e);
	for (size_t i = 0; i < l.n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", hw_ip_format(&l.v[i], text));
	return buf_take(&b);
}

static void assert_leases(const struct lease_store *store, const struct lease_owner *owner,
			  const char *want)
{
	autofree char *got = format_leases(store, owner);

	assert_string_equal(got, want);
}

static void release_all(struct lease_store *store, const struct lease_owner *owner,
			const char *known)
{
	AUTO(ip_list_done) struct ip_list l = { 0 };
	struct hw_err e;

	if (known) {
		struct hw_ip address = ip(known);
		ip_list_add(&l, &address);
	}
	assert_ok(lease_release_all(store, owner, &l, &e), e);
}

static void allocate_once(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;

	open_store(*state, &store);
	assert_int_equal(allocate(&store, &alice, "10.1.0.2"), 0);
	assert_int_equal(allocate(&store, &bob, "10.1.0.2"), 1);
	assert_int_equal(allocate(&store, &bob, "fd00::2"), 0);
	assert_leases(&store, NULL, "10.1.0.2 fd00::2");
	autofree char *text = place_read(*state, "net/10.1.0.2");
	assert_string_equal(text, "alice\r\neth0");
}

static void list_owned(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
	struct lease_owner other = { "alice", "eth1" };
	struct hw_ip second = ip("10.1.0.3");
	struct hw_err e;

	open_store(*state, &store);
	allocate(&store, &alice, "10.1.0.2");
	allocate(&store, &alice, "10.1.0.3");
	allocate(&store, &alice, "10.1.0.4");
	allocate(&store, &other, "10.1.0.5");
	assert_leases(&store, &alice, "10.1.0.2 10.1.0.3 10.1.0.4");
	assert_int_equal(lease_release(&store, &other, &second, &e), 0);
	assert_int_equal(lease_release(&store, &alice, &second, &e), 1);
	/* the last entry was renamed, so that there is no gap */
	assert_leases(&store, &alice, "10.1.0.2 10.1.0.4");
	release_all(&store, &alice, NULL);
	assert_leases(&store, &alice, "");
	assert_leases(&store, NULL, "10.1.0.5");
}

/* Another program changes a lease but not the index. */
static void lease_changed_outside(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;

	open_store(*state, &store);
	allocate(&store, &alice, "10.1.0.2");
	place_write(*state, "net/10.1.0.2", "bob\r\neth0", 0600);
	assert_leases(&store, &alice, "");
	allocate(&store, &alice, "10.1.0.3");
	assert_leases(&store, &alice, "10.1.0.3");
	release_all(&store, &alice, "10.1.0.2");
	assert_leases(&store, NULL, "10.1.0.2");
}

static void release_without_index(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;

	open_store(*state, &store);
	lease_close(&store); /* releases the lock: now upstream's plugin could write these leases */
	place_write(*state, "net/10.1.0.2", "alice\r\neth0", 0600);
	place_write(*state, "net/10.1.0.3", "alice", 0600);
	place_write(*state, "net/10.1.0.4", "", 0600);
	place_write(*state, "net/last_reserved_ip.0", "alice\r\neth0", 0600);
	open_store(*state, &store);
	assert_leases(&store, NULL, "10.1.0.2 10.1.0.3 10.1.0.4");
	place_write(*state, "net/10.1.0.9", "alice\r\neth0", 0600);
	release_all(&store, &alice, "10.1.0.9"); /* a known lease is released: there is no scan */
	assert_leases(&store, NULL, "10.1.0.2 10.1.0.3 10.1.0.4");
	release_all(&store, &alice, "10.1.0.9");
	assert_leases(&store, NULL, "10.1.0.3");
	release_all(&store, &alice, NULL);
	assert_leases(&store, NULL, "");
	assert_true(place_has(*state, "net/last_reserved_ip.0"));
}

static void finish(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
	struct hw_ip address = ip("10.1.0.2");
	struct hw_err e;

	open_store(*state, &store);
	allocate(&store, &alice, "10.1.0.2");
	assert_int_equal(index_finished_at(store.index, &alice, &address), 0);
	assert_ok(lease_finish(&store, &alice, &e), e);
	assert_true(index_finished_at(store.index, &alice, &address) > 0);
}

static void last_reserved(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
	struct hw_ip a = ip("10.1.0.100"), b = ip("10.1.0.2"), got;
	struct hw_err e;

	open_store(*state, &store);
	assert_int_equal(lease_last_reserved(&store, 3).family, 0);
	assert_ok(lease_set_last_reserved(&store, 3, &a, &e), e);
	assert_ok(lease_set_last_reserved(&store, 3, &b, &e), e);
	got = lease_last_reserved(&store, 3);
	assert_true(hw_ip_equal(&got, &b));
	place_write(*state, "net/last_reserved_ip.3", "", 0600);
	assert_int_equal(lease_last_reserved(&store, 3).family, 0);
}

static void unusual_files(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
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
	assert_int_equal(lease_match(&store, &c, &alice), LEASE_OWNED);
	release_all(&store, &alice, NULL);
	assert_leases(&store, NULL, "10.1.0.2 10.1.0.3");
}

static bool is_never_valid(void *ctx, const struct lease_owner *owner)
{
	(void)ctx, (void)owner;
	return false;
}

static void gc_removes_strays(void **state)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT, again = LEASE_STORE_INIT;
	struct lease_gc_options options = { .is_valid = is_never_valid };
	struct hw_err e;

	open_store(*state, &store);
	allocate(&store, &alice, "10.1.0.2");
	allocate(&store, &alice, "10.1.0.3");
	assert_ok(lease_finish(&store, &alice, &e), e);
	assert_int_equal(unlinkat(store.dir, "10.1.0.2", 0), 0);
	lease_close(&store);
	assert_ok(lease_open(&again, ((struct place *)*state)->dir, "net", LEASE_READ, &e), e);
	assert_ok(lease_gc(&again, &options, &e), e);
	/* without a list of valid attachments, GC keeps a lease whose ADD has finished */
	assert_leases(&again, NULL, "10.1.0.3");
	assert_leases(&again, &alice, "10.1.0.3");
	assert_int_equal(lease_has_any(&again, &alice, &e), 1);
	assert_int_equal(lease_has_any(&again, &bob, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(
			"lease: an address cannot be leased twice; the file has upstream's format",
			allocate_once),
		PLACE_TEST("lease: the index lists an owner's leases, even after one in the middle "
			   "was released",
			   list_owned),
		PLACE_TEST("lease: an index entry is ignored if its lease names another owner",
			   lease_changed_outside),
		PLACE_TEST(
			"lease: a scan finds leases without an index entry and removes empty ones",
			release_without_index),
		PLACE_TEST(
			"lease: lease_finish() records the time when the ADD of the owner finished",
			finish),
		PLACE_TEST("lease: the last allocated address of a set is stored; a truncated file "
			   "is ignored",
			   last_reserved),
		PLACE_TEST("lease: white space around the owner is ignored; a symbolic link or an "
			   "oversized file has an unknown owner",
			   unusual_files),
		PLACE_TEST("lease: GC removes index entries without a lease and leaves no gap",
			   gc_removes_strays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
