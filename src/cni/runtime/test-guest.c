/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-guest.c - tests of the library inside other programs
 *
 * Programs with threads, and with their own handling of children and signals.
 * Also runs under ThreadSanitizer.
 */
#include "cni/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "base/time.h"
#include "cni/result.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"

#define THREADS 8
#define ROUNDS	5

/* Replies to ADD with an address that contains the number in the container ID. */
#define GOOD                                                                                       \
	"cat >/dev/null; [ $CNI_COMMAND != ADD ] || echo '{\"cniVersion\":\"1.0.0\",\"ips\":"      \
	"[{\"address\":\"10.0.0.'${CNI_CONTAINERID#c}'/24\"}]}'"
#define ONE "{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":[{\"type\":\"a\"}]}"

struct guest {
	const struct place *p;
	struct hw_cni *cni;
	struct hw_conf *conf;
};

static void guest_done(struct guest *g)
{
	hw_conf_free(g->conf);
	hw_cni_free(g->cni);
}

AUTO_VALUE_DEFINE(guest_done, struct guest);

static struct guest guest(void **state, const char *plugin)
{
	place_plugin(*state, "a", plugin);
	return (struct guest){ .p = *state, .cni = place_cni(*state), .conf = test_list(ONE) };
}

static int add_and_del(const struct guest *g, const char *id, struct hw_err *e)
{
	struct hw_attach at = TEST_ATTACH;
	AUTO(hw_result_free) struct hw_result *result = NULL;
	autofree char *want = str_printf("10.0.0.%s/24", id + 1);
	char got[HW_PREFIX_TEXT];
	int r;

	at.container_id = id;
	r = hw_add(g->cni, g->conf, &at, HW_ADD_UNDO, &result, e);
	if (r < 0)
		return r;
	if (result->n_ips != 1 || !str_equal(hw_prefix_format(&result->ips[0].address, got), want))
		return hw_err_text(e, -EINVAL, "%s got the result of another container", id);
	r = hw_check(g->cni, g->conf, &at, e);
	return r < 0 ? r : hw_del(g->cni, g->conf, &at, e);
}

/* ---- threads -------------------------------------------------------------------- */

struct worker {
	const struct guest *g;
	pthread_t thread;
	int number;
	int r;
	struct hw_err e;
};

static void *add_and_del_often(void *arg)
{
	struct worker *w = arg;
	autofree char *id = str_printf("c%d", w->number + 1);

	for (int i = 0; i < ROUNDS && w->r >= 0; i++)
		w->r = add_and_del(w->g, id, &w->e);
	return NULL;
}

static void many_threads(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, GOOD);
	struct worker *workers = mem_new(THREADS * sizeof(*workers));

	for (int i = 0; i < THREADS; i++) {
		workers[i].g = &g;
		workers[i].number = i;
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, add_and_del_often, &workers[i]),
			0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_ok(workers[i].r, workers[i].e);
	free(workers);
}

/* ---- children ----------------------------------------------------------------------- */

static void ignore_sigchld(struct sigaction *ret_before)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	assert_int_equal(sigaction(SIGCHLD, &ignore, ret_before), 0);
}

static void sigchld_ignored(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, GOOD);
	struct hw_attach at = TEST_ATTACH;
	struct sigaction before;
	struct hw_err good, bad;
	int added, failed;

	ignore_sigchld(&before);
	added = add_and_del(&g, "c1", &good);
	place_plugin(g.p, "a", "cat >/dev/null; exit 1");
	failed = hw_add(g.cni, g.conf, &at, 0, NULL, &bad);
	sigaction(SIGCHLD, &before, NULL);
	assert_ok(added, good);
	assert_true(failed < 0);
	assert_string_equal(bad.msg, "plugin type=\"a\" failed (add): netplugin failed with no "
				     "error message: exit status 1");
}

/* A thread of the calling program that reaps every child. */
struct reaper {
	atomic_bool stop;
	atomic_int taken;
};

static void *reap(void *arg)
{
	struct reaper *reaper = arg;

	while (!reaper->stop) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			reaper->taken++;
		else
			sched_yield();
	}
	return NULL;
}

static void host_reaps_children(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, GOOD);
	struct reaper reaper = { 0 };
	struct hw_attach at = TEST_ATTACH;
	struct hw_err e, bad;
	pthread_t thread;
	int r = 0, failed = 0;

	assert_int_equal(pthread_create(&thread, NULL, reap, &reaper), 0);
	for (int i = 0; i < 20 && r >= 0; i++)
		r = add_and_del(&g, "c1", &e);
	place_plugin(g.p, "a", "cat >/dev/null; exit 1");
	failed = hw_add(g.cni, g.conf, &at, 0, NULL, &bad);
	reaper.stop = true;
	pthread_join(thread, NULL);
	assert_ok(r, e);
	assert_true(failed < 0);
	assert_contains(bad.msg, "no error message: exit status 1");
}

static void other_children_are_kept(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, GOOD);
	pid_t child = fork();
	struct hw_err e;
	int status;

	if (child == 0)
		_exit(7);
	assert_true(child > 0);
	assert_ok(add_and_del(&g, "c1", &e), e);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	/* the library must leave no child behind */
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
}

/* ---- signals --------------------------------------------------------------------------- */

static void plugin_that_does_not_read(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, "exec <&-; echo '{}'");
	AUTO(buf_done) struct buf json = { 0 };
	AUTO(hw_conf_free) struct hw_conf *big = NULL;
	struct hw_attach at = TEST_ATTACH;
	struct sigaction action;
	struct hw_err e;

	assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
	assert_true(action.sa_handler == SIG_DFL);
	/* more than a pipe holds */
	buf_puts(&json, "{\"name\":\"n\",\"plugins\":[{\"type\":\"a\",\"x\":\"");
	for (int i = 0; i < 300000; i++)
		buf_putc(&json, 'x');
	buf_puts(&json, "\"}]}");
	big = test_list(json.data);
	assert_ok(hw_add(g.cni, big, &at, 0, NULL, &e), e);
}

static void broken_stderr(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, "cat >/dev/null; echo hint >&2; echo '{}'");
	struct hw_attach at = TEST_ATTACH;
	struct hw_err e;
	pid_t child;
	int status;

	g.cni->stderr_mode = HW_STDERR_AFTER;
	child = fork();
	if (child == 0) {
		int ends[2];

		if (pipe(ends) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(2);
		close(ends[0]);
		_exit(hw_add(g.cni, g.conf, &at, 0, NULL, &e) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A pending SIGPIPE of the calling program is not consumed. */
static void pending_sigpipe_stays(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, "cat >/dev/null; echo hint >&2; echo '{}'");
	struct hw_attach at = TEST_ATTACH;
	struct hw_err e;
	pid_t child;
	int status;

	g.cni->stderr_mode = HW_STDERR_AFTER;
	child = fork();
	if (child == 0) {
		sigset_t set;
		int ends[2];

		sigemptyset(&set);
		sigaddset(&set, SIGPIPE);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGPIPE);
		if (pipe(ends) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(2);
		close(ends[0]);
		if (hw_add(g.cni, g.conf, &at, 0, NULL, &e) < 0)
			_exit(3);
		_exit(sigpending(&set) < 0 || !sigismember(&set, SIGPIPE));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

struct signals {
	struct sigaction actions[NSIG];
	sigset_t mask;
};

static void read_signals(struct signals *ret)
{
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &ret->actions[i]);
	pthread_sigmask(SIG_SETMASK, NULL, &ret->mask);
}

static void assert_signals_equal(const struct signals *a, const struct signals *b)
{
	for (int i = 1; i < NSIG; i++) {
		assert_ptr_equal(a->actions[i].sa_handler, b->actions[i].sa_handler);
		assert_int_equal(a->actions[i].sa_flags, b->actions[i].sa_flags);
		assert_int_equal(sigismember(&a->mask, i), sigismember(&b->mask, i));
	}
}

static void leaves_the_process_alone(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, GOOD);
	struct signals before = { 0 }, after = { 0 };
	struct stat ns_before, ns_after;
	struct hw_attach at = TEST_ATTACH;
	struct hw_err e;

	assert_int_equal(stat("/proc/thread-self/ns/net", &ns_before), 0);
	read_signals(&before);
	assert_ok(add_and_del(&g, "c1", &e), e);
	place_plugin(g.p, "a", "while :; do sleep 1; done");
	at.timeout_ms = 100;
	assert_true(hw_add(g.cni, g.conf, &at, 0, NULL, &e) < 0);
	read_signals(&after);
	assert_int_equal(stat("/proc/thread-self/ns/net", &ns_after), 0);
	assert_signals_equal(&before, &after);
	assert_int_equal(ns_before.st_ino, ns_after.st_ino);
}

/* The calling program blocks all signals; the plugin must not inherit that. */
static void plugin_gets_default_signals(void **state)
{
	AUTO(guest_done) struct guest g = guest(state, GOOD);
	struct hw_attach at = TEST_ATTACH;
	sigset_t all, before;
	struct hw_err e;
	int r;

	place_plugin(g.p, "a", "cat >/dev/null; note $(grep SigBlk /proc/$$/status); echo '{}'");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = hw_add(g.cni, g.conf, &at, 0, NULL, &e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_ok(r, e);
	assert_notes(g.p, "SigBlk: 0000000000000000\n");
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST("guest: eight threads run different containers at once", many_threads),
	PLACE_TEST("guest: exit statuses are correct with SIGCHLD ignored", sigchld_ignored),
	PLACE_TEST("guest: exit statuses are correct while a thread reaps every child",
		   host_reaps_children),
	PLACE_TEST("guest: other children of the calling program are not reaped",
		   other_children_are_kept),
	PLACE_TEST("guest: a plugin that does not read its input raises no SIGPIPE",
		   plugin_that_does_not_read),
	PLACE_TEST("guest: a broken standard error raises no SIGPIPE", broken_stderr),
	PLACE_TEST("guest: a pending SIGPIPE stays pending", pending_sigpipe_stays),
	PLACE_TEST("guest: signal handlers, signal mask and network namespace are unchanged",
		   leaves_the_process_alone),
	PLACE_TEST("guest: a plugin starts with no signal blocked", plugin_gets_default_signals),
};

int main(void)
{
	return cmocka_run_group_tests_name("guest", tests, NULL, NULL);
}
