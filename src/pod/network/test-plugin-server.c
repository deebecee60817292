/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/test-plugin-server.c - tests of plugins that `hawser-plugin serve` runs
 *
 * The directory of plugins has a link to hawser-plugin, links of some of its plugins, and shell scripts.
 * The path of the first link finds the processes of this test's serve.
 */
#include "pod/network/plugin-server.h"

#include "cni/test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/time.h"

#define LONG_MS	   60000 /* reached only if a test fails */
#define THREADS	   50
#define OTHER_USER 65534
#define LARGE	   (5 << 20)  /* more than a plugin of ours accepts */
#define VERY_LARGE (10 << 20) /* more than a message may have */

static const char config[] = "{\"cniVersion\":\"1.1.0\",\"name\":\"net\",\"type\":\"x\"}";

/* ---- helpers ----------------------------------------------------------------------- */

static char *program(void)
{
	return str_printf("%s/bin/hawser-plugin", str_or(getenv("HAWSER_BUILD"), "build"));
}

static int setup(void **state)
{
	static const char *const links[] = { "hawser-plugin", "noop", "host-local", "bridge" };
	autofree char *real = program();
	struct place *p;

	if (place_setup(state) < 0)
		return -1;
	p = *state;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		autofree char *link = str_printf("%s/%s", p->bin, links[i]);

		if (symlink(real, link) < 0)
			return -1;
	}
	return mkdir(p->state, 0700);
}

static struct plugin_server *new_server(const struct place *p)
{
	return plugin_server_new(&(struct plugin_server_options){
		.plugin_dirs = p->bin, .program = "/nowhere", .state_dir = p->state });
}

struct outcome {
	int r;
	struct hw_err e;
	struct hw_ran ran;
};

static void outcome_done(struct outcome *o)
{
	free(o->ran.output);
	free(o->ran.errors);
}
AUTO_VALUE_DEFINE(outcome_done, struct outcome);

struct options {
	const char *command; /* default: VERSION */
	const char *variable;
	const char *input; /* default: config */
	int cancel_fd, timeout_ms;
	bool stderr_through;
};

/* Runs a plugin with @exec, NULL: hw_exec_run(). */
static struct outcome run_with(const struct hw_exec *exec, const struct place *p,
			       const char *plugin, struct options o)
{
	autofree char *path = str_printf("%s/%s", p->bin, plugin);
	autofree char *command = str_printf("CNI_COMMAND=%s", str_or(o.command, "VERSION"));
	autofree char *cni_path = str_printf("CNI_PATH=%s", p->bin);
	const char *const env[] = { command,
				    cni_path,
				    "PATH=/usr/bin:/bin",
				    "CNI_CONTAINERID=c1",
				    "CNI_NETNS=/nowhere",
				    "CNI_IFNAME=eth0",
				    "HAWSER_STATE=/wrong",
				    o.variable,
				    NULL };
	const struct hw_run run = {
		.size = sizeof(run),
		.plugin = path,
		.env = env,
		.input = str_or(o.input, config),
		.input_len = strlen(str_or(o.input, config)),
		.cancel_fd = o.cancel_fd,
		.stderr_through = o.stderr_through,
		.deadline_ns = o.timeout_ms ? time_deadline(o.timeout_ms) : 0,
	};
	struct outcome out = { .ran.size = sizeof(out.ran) };

	out.r = exec ? exec->run(exec->ctx, &run, &out.ran, &out.e)
		     : hw_exec_run(NULL, &run, &out.ran, &out.e);
	return out;
}

static struct outcome run(struct plugin_server *s, const struct place *p, const char *plugin,
			  struct options o)
{
	return run_with(plugin_server_exec(s), p, plugin, o);
}

static void assert_output(const struct outcome *o, const char *want)
{
	if (o->r < 0)
		fail_msg("%s", o->e.msg);
	assert_string_equal(o->ran.output, want);
}

static void wait_until(bool (*is_true)(const void *arg), const void *arg)
{
	int64_t deadline = time_deadline(LONG_MS);

	while (!is_true(arg)) {
		assert_false(time_has_passed(deadline));
		time_sleep(1);
	}
}

static bool is_dead(const void *pid)
{
	return kill(*(const pid_t *)pid, 0) < 0 && errno == ESRCH;
}

static bool file_exists(const void *path)
{
	return access(path, F_OK) == 0;
}

/* Whether a script has created the file was-run. */
static bool was_run(const struct place *p)
{
	autofree char *path = str_printf("%s/was-run", p->dir);

	return file_exists(path);
}

/* Waits for a file that a script writes its process ID to. */
static pid_t read_pid(const struct place *p, const char *name)
{
	autofree char *path = str_printf("%s/%s", p->dir, name);
	autofree char *text = NULL;

	wait_until(file_exists, path);
	text = place_read(p, name);
	assert_true(*text);
	return (pid_t)strtol(text, NULL, 10);
}

/* Replaces a link in the directory of plugins by a copy of hawser-plugin. */
static void replace_by_copy(const struct place *p, const char *name)
{
	autofree char *path = str_printf("%s/%s", p->bin, name);
	autofree char *real = program();
	AUTO(buf_done) struct buf bytes = { 0 };
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, real, 1 << 30, &bytes, &e), e);
	assert_ok(file_replace(AT_FDCWD, path, bytes.data, bytes.len, 0755, 0, &e), e);
}

static bool is_served(const struct place *p, const char *pid)
{
	autofree char *want = str_printf("%s/hawser-plugin", p->bin);
	autofree char *path = str_printf("/proc/%s/cmdline", pid);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	return file_read(AT_FDCWD, path, 4096, &text, &e) == 0 && text.data &&
	       str_equal(text.data, want);
}

/* Return: the process ID of serve, which is the oldest of its processes, or the youngest of them: the
 * process of the last call, or the one that waits; 0 if no process is found */
static pid_t find_served(const struct place *p, bool youngest)
{
	DIR *dir = opendir("/proc");
	pid_t found = 0;

	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && is_served(p, entry->d_name) &&
		    (found == 0 || (youngest ? pid > found : pid < found)))
			found = pid;
	}
	closedir(dir);
	return found;
}

static bool none_is_served(const void *p)
{
	return find_served(p, false) == 0;
}

/* Return: the parent of a process */
static pid_t parent_of(pid_t pid)
{
	autofree char *path = str_printf("/proc/%d/stat", (int)pid);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, path, 4096, &text, &e), e);
	return (pid_t)strtol(strrchr(text.data, ')') + strlen(") S "), NULL, 10);
}

/* A call in a thread of its own. */
struct running {
	struct plugin_server *server;
	const struct place *p;
	const char *plugin;
	struct options o;
	pthread_t thread;
	struct outcome out;
};

static void *run_in_thread(void *arg)
{
	struct running *c = arg;

	c->out = run(c->server, c->p, c->plugin, c->o);
	return NULL;
}

static void start(struct running *c)
{
	assert_int_equal(pthread_create(&c->thread, NULL, run_in_thread, c), 0);
}

static void join(struct running *c)
{
	pthread_join(c->thread, NULL);
}

/* ---- the same as by exec ------------------------------------------------------------ */

static void assert_same(const struct outcome *a, const struct outcome *b, const char *what)
{
	if (a->r != b->r)
		fail_msg("%s: %d, %d: %s", what, a->r, b->r, a->r < 0 ? a->e.msg : b->e.msg);
	if (a->r < 0) {
		assert_string_equal(a->e.msg, b->e.msg);
		return;
	}
	assert_int_equal(a->ran.status, b->ran.status);
	assert_string_equal(a->ran.output, b->ran.output);
	assert_string_equal(str_or(a->ran.errors, "none"), str_or(b->ran.errors, "none"));
	assert_int_equal(a->ran.output_len, b->ran.output_len);
	assert_int_equal(a->ran.errors_len, b->ran.errors_len);
}

static void results_are_those_of_exec(void **state)
{
	static const struct {
		const char *plugin;
		struct options o;
	} cases[] = {
		{ "noop", { 0 } },
		{ "bridge", { 0 } },
		{ "host-local", { .command = "" } },
		{ "host-local", { .command = "STATUS" } },
		{ "host-local", { .command = "nonsense" } },
		{ "host-local", { .command = "ADD", .input = "{" } },
		{ "host-local", { .command = "ADD", .input = "" } },
		{ "host-local", { .command = "ADD", .variable = "CNI_CONTAINERID=$" } },
		{ "bridge", { .command = "ADD", .stderr_through = true } },
		{ "bridge", { .command = "", .stderr_through = true } },
		{ "hawser-plugin", { 0 } },
		{ "missing", { 0 } },
		{ "script", { 0 } },
		{ "script", { .command = "ADD", .stderr_through = true } },
		{ "script", { .variable = "CNI_ARGS=kill -SEGV $$" } },
		{ "script", { .variable = "CNI_ARGS=kill -KILL $$" } },
		{ "script", { .variable = "CNI_ARGS=exit 255" } },
		{ "not-executable", { 0 } },
		{ "not-a-program", { 0 } },
		{ "directory", { 0 } },
	};
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	autofree char *directory = str_printf("%s/directory", p->bin);

	place_plugin(p, "script",
		     "cat; echo \"$CNI_COMMAND $0 $#\"; echo oops >&2; eval \"$CNI_ARGS\"; exit 3");
	place_write(p, "bin/not-executable", "#!/bin/sh\n", 0644);
	place_write(p, "bin/not-a-program", "nonsense", 0755);
	assert_int_equal(mkdir(directory, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(outcome_done)
		struct outcome served = run(s, p, cases[i].plugin, cases[i].o);
		AUTO(outcome_done)
		struct outcome executed = run_with(NULL, p, cases[i].plugin, cases[i].o);

		assert_same(&served, &executed, cases[i].plugin);
	}
}

static void large_inputs(void **state)
{
	static const size_t sizes[] = { 100000, LARGE };
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);

	place_plugin(p, "count", "wc -c; cksum");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		autofree char *input = mem_new(sizes[i] + 1);

		memset(input, ' ', sizes[i]);
		for (const char *const *plugin =
			     (const char *const[]){ "count", "host-local", NULL };
		     *plugin; plugin++) {
			struct options o = { .command = "ADD", .input = input };
			AUTO(outcome_done) struct outcome served = run(s, p, *plugin, o);
			AUTO(outcome_done) struct outcome executed = run_with(NULL, p, *plugin, o);

			assert_same(&served, &executed, *plugin);
		}
	}
}

static void very_large_input_is_refused(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	autofree char *input = mem_new(VERY_LARGE + 1);

	memset(input, ' ', VERY_LARGE);
	place_plugin(p, "touch", "touch $D/was-run");
	AUTO(outcome_done)
	struct outcome out = run(s, p, "touch", (struct options){ .input = input });
	assert_int_equal(out.r, -E2BIG);
	assert_string_equal(out.e.msg, "input exceeds 9 MiB");
	assert_false(was_run(p));
}

/* Runs plugin noop. Return: whether its file was opened, as execve() does. Asking for its status is no
 * access. */
static bool is_executed(struct plugin_server *s, const struct place *p)
{
	autofree char *path = str_printf("%s/noop", p->bin);
	autoclose int watcher = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char event[512];

	assert_int_not_equal(inotify_add_watch(watcher, path, IN_OPEN | IN_ACCESS), -1);
	AUTO(outcome_done) struct outcome out = run(s, p, "noop", (struct options){ 0 });
	assert_ok(out.r, out.e);
	assert_int_equal(out.ran.status, 0);
	return read(watcher, event, sizeof(event)) > 0;
}

static void own_plugins_are_not_executed(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);

	(void)is_executed(s, p); /* starts serve, which is the same file */
	assert_false(is_executed(s, p));
	/* a copy is another file, whatever it contains */
	replace_by_copy(p, "noop");
	assert_true(is_executed(s, p));
}

static const char *const inherited[] = { "AWS_SECRET_ACCESS_KEY=x",
					 "DATASTORE_TYPE=etcdv3",
					 "ETCD_CA_CERT_FILE=/ca",
					 "ETCDX=x",
					 "HAWSER_STATE=/wrong",
					 "LD_LIBRARY_PATH=/nowhere",
					 "LISTEN_FDS=1",
					 "NOTIFY_SOCKET=/notify",
					 "https_proxy=http://p",
					 NULL };

/* Compares the environment of plugin env. */
static void assert_environment(const struct hw_exec *exec, const struct place *p, const char *want)
{
	autofree char *path = str_printf("%s/env", p->bin);
	struct outcome out = { .ran.size = sizeof(out.ran) };
	const struct hw_run run = {
		.size = sizeof(run), .plugin = path, .env = inherited, .cancel_fd = -1
	};

	assert_ok(exec->run(exec->ctx, &run, &out.ran, &out.e), out.e);
	assert_string_equal(out.ran.output, want);
	outcome_done(&out);
}

static void environment_has_a_fixed_list(void **state)
{
	const struct place *p = *state;
	autofree char *want = str_printf("DATASTORE_TYPE=etcdv3\nETCD_CA_CERT_FILE=/ca\n"
					 "HAWSER_STATE=%s\nhttps_proxy=http://p\n",
					 p->state);

	place_plugin(p, "env",
		     "LC_ALL=C tr '\\0' '\\n' </proc/$$/environ | LC_ALL=C grep -v SAN_OPTIONS "
		     "| LC_ALL=C sort");
	AUTO(plugin_server_free) struct plugin_server *served = new_server(p);
	assert_environment(plugin_server_exec(served), p, want);
}

static void plugin_inherits_no_descriptor(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);

	place_plugin(p, "list", "for i in /proc/$$/fd/*; do echo ${i##*/}; done");
	AUTO(outcome_done) struct outcome served = run(s, p, "list", (struct options){ 0 });
	AUTO(outcome_done)
	struct outcome executed = run_with(NULL, p, "list", (struct options){ 0 });
	assert_same(&served, &executed, "list");
}

/* ---- plugins that do not end ---------------------------------------------------------- */

/* Writes its process ID to a file and sleeps, with a child that does the same and ignores signals. */
static void write_sleeper(const struct place *p)
{
	place_plugin(p, "sleeper",
		     "trap '' HUP INT TERM IO\n"
		     "sh -c \"trap '' HUP INT TERM IO; echo \\$\\$ >$D/.c; mv $D/.c $D/child;"
		     " sleep 1000\" &\n"
		     "echo $$ >$D/.p; mv $D/.p $D/plugin; sleep 1000");
}

static void plugin_that_hangs_is_killed(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	pid_t plugin, child;

	write_sleeper(p);
	AUTO(outcome_done)
	struct outcome out = run(s, p, "sleeper", (struct options){ .timeout_ms = 3000 });
	assert_int_equal(out.r, -ETIMEDOUT);
	/* the message has the time that has passed, which is longer on a busy machine */
	assert_starts(out.e.msg, "netplugin failed with no error message: timed out after ");
	plugin = read_pid(p, "plugin");
	child = read_pid(p, "child");
	assert_true(is_dead(&plugin));
	assert_true(is_dead(&child));
}

static void call_can_be_cancelled(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	autoclose int cancel = eventfd(0, EFD_CLOEXEC);
	struct running c = { s, p, "sleeper", { .cancel_fd = cancel } };
	pid_t child;

	write_sleeper(p);
	start(&c);
	child = read_pid(p, "child");
	eventfd_write(cancel, 1);
	join(&c);
	assert_int_equal(c.out.r, -ECANCELED);
	assert_true(is_dead(&child));
	AUTO(outcome_done)
	struct outcome again = run(s, p, "noop", (struct options){ .cancel_fd = cancel });
	assert_int_equal(again.r, -ECANCELED);
}

/* host-local waits for a lock that this test holds. */
static int lock_network(const struct place *p)
{
	autofree char *conf = str_printf("%s/leases/net", p->dir);
	autofree char *path = str_printf("%s/lock", conf);
	struct hw_err e;
	int fd;

	assert_ok(file_mkdirs(AT_FDCWD, conf, 0700, &e), e);
	assert_ok(file_lock(AT_FDCWD, path, true, time_now(), &fd, &e), e);
	return fd;
}

static char *host_local_config(const struct place *p)
{
	return str_printf("{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"bridge\",\"ipam\":"
			  "{\"type\":\"host-local\",\"dataDir\":\"%s/leases\",\"subnet\":"
			  "\"10.1.0.0/24\"}}",
			  p->dir);
}

static bool has_lock_open(const struct place *p, const char *pid)
{
	autofree char *lock = str_printf("%s/leases/net/lock", p->dir);
	autofree char *path = str_printf("/proc/%s/fd", pid);
	DIR *dir = opendir(path);
	bool found = false;

	for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		char target[512] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0)
			found |= str_equal(target, lock);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Return: the process of a call that has the lock open, 0 if there is no such process yet */
static pid_t find_waiter(const struct place *p)
{
	DIR *dir = opendir("/proc");
	pid_t found = 0;

	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (is_served(p, entry->d_name) && has_lock_open(p, entry->d_name))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	closedir(dir);
	return found;
}

static bool has_waiter(const void *p)
{
	return find_waiter(p) != 0;
}

static void own_plugin_that_waits_is_killed(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	autoclose int cancel = eventfd(0, EFD_CLOEXEC);
	int lock = lock_network(p);
	autofree char *input = host_local_config(p);
	struct running c = {
		s, p, "host-local", { .command = "ADD", .input = input, .cancel_fd = cancel }
	};

	start(&c);
	wait_until(has_waiter, p);
	eventfd_write(cancel, 1);
	join(&c);
	assert_int_equal(c.out.r, -ECANCELED);
	assert_false(has_waiter(p));
	close(lock);
}

/* The process that waits for a call has serve's socket as standard input. */
static bool has_waiting_process(const void *p)
{
	pid_t youngest = find_served(p, true);
	autofree char *path = str_printf("/proc/%d/fd/0", (int)youngest);
	char target[64] = "";

	return youngest != find_served(p, false) &&
	       readlink(path, target, sizeof(target) - 1) > 0 && str_starts(target, "socket:");
}

/* Nothing that the deadline could kill has started, and nothing starts later. */
static void deadline_applies_to_a_stopped_serve(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	pid_t stopped[2];

	place_plugin(p, "toucher", "touch $D/touched");
	AUTO(outcome_done) struct outcome first = run(s, p, "noop", (struct options){ 0 });
	assert_ok(first.r, first.e);
	wait_until(has_waiting_process, p);
	stopped[0] = find_served(p, false);
	stopped[1] = find_served(p, true);
	kill(stopped[0], SIGSTOP);
	kill(stopped[1], SIGSTOP);
	AUTO(outcome_done)
	struct outcome late = run(s, p, "toucher", (struct options){ .timeout_ms = 50 });
	assert_int_equal(late.r, -ETIMEDOUT);
	kill(stopped[0], SIGCONT);
	kill(stopped[1], SIGCONT);
	wait_until(is_dead, &stopped[1]); /* it has read the request */
	assert_false(place_has(p, "touched"));
	AUTO(outcome_done) struct outcome next = run(s, p, "toucher", (struct options){ 0 });
	assert_ok(next.r, next.e);
	assert_true(place_has(p, "touched"));
}

static void plugin_that_prints_without_end_is_killed(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	pid_t child;

	place_plugin(p, "yes",
		     "sh -c \"trap '' HUP INT TERM IO; echo \\$\\$ >$D/.c; mv $D/.c "
		     "$D/child; sleep 1000\" &\n"
		     "while [ ! -e $D/child ]; do :; done; exec yes");
	AUTO(outcome_done) struct outcome out = run(s, p, "yes", (struct options){ 0 });
	assert_int_equal(out.r, -EFBIG);
	assert_string_equal(out.e.msg, "netplugin failed: output exceeds 4 MiB, killed");
	child = read_pid(p, "child");
	assert_true(is_dead(&child));
}

/* A delegate shares the standard error of the plugin that calls it. */
static void delegate_that_prints_without_end_cannot_fill_the_memory(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	const struct options del = {
		.command = "DEL",
		.input = "{\"cniVersion\":\"1.0.0\",\"name\":\"net\","
			 "\"type\":\"bridge\",\"ipam\":{\"type\":\"filler\"}}"
	};

	place_plugin(p, "filler", "head -c 64M /dev/zero | tr '\\0' x >&2; echo $? >$D/status");
	AUTO(outcome_done) struct outcome large = run(s, p, "bridge", del);
	assert_int_equal(large.r, -EFBIG);
	assert_string_equal(large.e.msg, "netplugin failed: output exceeds 4 MiB, killed");
	autofree char *status = place_read(p, "status");
	assert_string_equal(status, "1\n");

	place_plugin(p, "filler", "head -c 4194304 /dev/zero | tr '\\0' x >&2");
	AUTO(outcome_done) struct outcome allowed = run(s, p, "bridge", del);
	assert_ok(allowed.r, allowed.e);
	assert_int_equal(allowed.ran.errors_len, 4194304);

	place_plugin(p, "filler", "echo one >&2; echo two >&2");
	AUTO(outcome_done) struct outcome small = run(s, p, "bridge", del);
	assert_ok(small.r, small.e);
	assert_int_equal(small.ran.status, 0);
	assert_string_equal(small.ran.errors, "one\ntwo\n");
}

static void daemon_that_a_plugin_leaves_survives(void **state)
{
	const struct place *p = *state;
	struct plugin_server *s = new_server(p);
	pid_t daemons[2];

	place_plugin(p, "starter",
		     "sh -c \"echo \\$\\$ >$D/.c; mv $D/.c $D/child; exec sleep 1000\" &\n"
		     "setsid sh -c \"echo \\$\\$ >$D/.p; mv $D/.p $D/session; exec sleep 1000\" &\n"
		     "while [ ! -e $D/child ] || [ ! -e $D/session ]; do :; done; echo started");
	AUTO(outcome_done) struct outcome out = run(s, p, "starter", (struct options){ 0 });
	assert_output(&out, "started\n");
	plugin_server_free(s);
	wait_until(none_is_served, p);
	daemons[0] = read_pid(p, "child");
	daemons[1] = read_pid(p, "session");
	for (size_t i = 0; i < ARRAY_SIZE(daemons); i++) {
		assert_false(is_dead(&daemons[i]));
		kill(daemons[i], SIGKILL);
	}
}

/* ---- processes that are killed --------------------------------------------------------- */

static void killed_plugin_is_reported(void **state)
{
	static const int signals[] = { SIGKILL, SIGSEGV, SIGABRT };
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	autofree char *input = host_local_config(p);
	const struct rlimit no_core = { 0 };

	assert_int_equal(setrlimit(RLIMIT_CORE, &no_core), 0);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		int lock = lock_network(p);
		struct running c = { s, p, "host-local", { .command = "ADD", .input = input } };

		start(&c);
		wait_until(has_waiter, p);
		kill(find_waiter(p), signals[i]);
		join(&c);
		assert_ok(c.out.r, c.out.e);
		assert_true(WIFSIGNALED(c.out.ran.status));
		assert_int_equal(WTERMSIG(c.out.ran.status), signals[i]);
		outcome_done(&c.out);
		close(lock);
	}
}

static void children_of_a_killed_process_are_killed(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	struct running c = { s, p, "sleeper", { 0 } };
	pid_t plugin, child, process;

	write_sleeper(p);
	start(&c);
	plugin = read_pid(p, "plugin");
	child = read_pid(p, "child");
	process = plugin; /* its child, or with ThreadSanitizer a child of its child */
	while (parent_of(process) != find_served(p, false))
		process = parent_of(process);
	kill(process, SIGKILL);
	join(&c);
	assert_ok(c.out.r, c.out.e);
	assert_int_equal(c.out.ran.status, SIGKILL);
	outcome_done(&c.out);
	wait_until(is_dead, &plugin);
	wait_until(is_dead, &child);
}

static void call_survives_serve(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	struct running c = { s, p, "waiter", { 0 } };
	pid_t serve;

	place_plugin(
		p, "waiter",
		"echo $$ >$D/.p; mv $D/.p $D/plugin; while [ ! -e $D/go ]; do :; done; echo went");
	start(&c);
	(void)read_pid(p, "plugin");
	serve = find_served(p, false);
	kill(serve, SIGKILL);
	for (int i = 0; i < 3; i++) {
		AUTO(outcome_done) struct outcome next = run(s, p, "noop", (struct options){ 0 });

		assert_ok(next.r, next.e);
	}
	assert_true(is_dead(&serve));
	place_write(p, "go", "", 0600);
	join(&c);
	assert_output(&c.out, "went\n");
	outcome_done(&c.out);
}

/* Kills what it can find while calls are made one after the other: none of them may fail. */
static void calls_are_repeated_if_serve_is_killed(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);

	for (int i = 0; i < 30; i++) {
		AUTO(outcome_done) struct outcome out = run(s, p, "noop", (struct options){ 0 });
		pid_t victim;

		assert_ok(out.r, out.e);
		assert_int_equal(out.ran.status, 0);
		victim = find_served(p, i % 2); /* serve, or the process that waits */
		if (victim > 0)
			kill(victim, SIGKILL);
	}
}

/* ---- a daemon in a process of its own --------------------------------------------------- */

/* The arguments of this program if it is that daemon. */
enum { ARG_DIR = 1, ARG_PLUGIN, ARG_COMMAND, ARG_INPUT, ARGS };

static int run_daemon(char **argv)
{
	struct place p = { 0 };
	struct plugin_server *s;

	snprintf(p.bin, sizeof(p.bin), "%s/bin", argv[ARG_DIR]);
	snprintf(p.state, sizeof(p.state), "%s/state", argv[ARG_DIR]);
	s = new_server(&p);
	(void)run(s, &p, argv[ARG_PLUGIN],
		  (struct options){ .command = argv[ARG_COMMAND], .input = argv[ARG_INPUT] });
	return 1; /* not reached: the daemon is killed */
}

static pid_t start_daemon(const struct place *p, const char *plugin, const char *command,
			  const char *input)
{
	const char *const argv[] = { "daemon", p->dir, plugin, command, input, NULL };
	pid_t pid;

	assert_int_equal(
		posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char *const *)argv, environ), 0);
	return pid;
}

static void plugins_end_with_the_daemon(void **state)
{
	const struct place *p = *state;
	pid_t pid, plugin, child;
	struct hw_err e;

	write_sleeper(p);
	pid = start_daemon(p, "sleeper", "ADD", "");
	plugin = read_pid(p, "plugin");
	child = read_pid(p, "child");
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	assert_int_equal(plugin_server_wait(s, time_deadline(1), &e), -ETIMEDOUT);
	assert_starts(e.msg, "plugins of an earlier daemon are still running: ");
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_ok(plugin_server_wait(s, time_deadline(LONG_MS), &e), e);
	assert_true(is_dead(&plugin));
	assert_true(is_dead(&child));
	wait_until(none_is_served, p);
}

static void plugins_end_with_the_daemon_without_serve(void **state)
{
	const struct place *p = *state;
	pid_t pid, plugin, child;
	struct hw_err e;

	write_sleeper(p);
	pid = start_daemon(p, "sleeper", "ADD", "");
	plugin = read_pid(p, "plugin");
	child = read_pid(p, "child");
	kill(find_served(p, false), SIGKILL);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	assert_ok(plugin_server_wait(s, time_deadline(LONG_MS), &e), e);
	assert_true(is_dead(&plugin));
	assert_true(is_dead(&child));
}

static void own_plugin_ends_with_the_daemon(void **state)
{
	const struct place *p = *state;
	autofree char *input = host_local_config(p);
	int lock = lock_network(p);
	struct hw_err e;
	pid_t pid;

	pid = start_daemon(p, "host-local", "ADD", input);
	wait_until(has_waiter, p);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	assert_ok(plugin_server_wait(s, time_deadline(LONG_MS), &e), e);
	assert_false(has_waiter(p));
	close(lock);
}

static void calls_wait_for_an_earlier_daemon(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	autofree char *path = str_printf("%s/plugins.lock", p->state);
	autoclose int cancel = eventfd(0, EFD_CLOEXEC);
	struct running c = { s, p, "noop", { 0 } };
	struct hw_err e;
	int lock;

	assert_ok(file_lock(AT_FDCWD, path, true, time_now(), &lock, &e), e);
	AUTO(outcome_done)
	struct outcome late = run(s, p, "noop", (struct options){ .timeout_ms = 20 });
	assert_int_equal(late.r, -ETIMEDOUT);
	assert_starts(late.e.msg, "plugins of an earlier daemon are still running: ");
	eventfd_write(cancel, 1);
	AUTO(outcome_done)
	struct outcome cancelled = run(s, p, "noop", (struct options){ .cancel_fd = cancel });
	assert_int_equal(cancelled.r, -ECANCELED);
	assert_true(none_is_served(p));
	start(&c);
	close(lock);
	join(&c);
	assert_ok(c.out.r, c.out.e);
	outcome_done(&c.out);
}

/* ---- the program ----------------------------------------------------------------------- */

static void replaced_program_is_used(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	struct running c = { s, p, "waiter", { 0 } };
	pid_t old, new;

	place_plugin(
		p, "waiter",
		"echo $$ >$D/.p; mv $D/.p $D/plugin; while [ ! -e $D/go ]; do :; done; echo went");
	start(&c);
	(void)read_pid(p, "plugin");
	old = find_served(p, false);
	replace_by_copy(p, "hawser-plugin");
	AUTO(outcome_done) struct outcome out = run(s, p, "noop", (struct options){ 0 });
	assert_ok(out.r, out.e);
	new = find_served(p, true);
	assert_true(parent_of(new) != old);
	assert_false(is_dead(&old)); /* it still has a call */
	place_write(p, "go", "", 0600);
	join(&c);
	assert_output(&c.out, "went\n");
	outcome_done(&c.out);
	wait_until(is_dead, &old);
}

static void remove_program(const struct place *p)
{
	autofree char *path = str_printf("%s/hawser-plugin", p->bin);

	assert_int_equal(unlink(path), 0);
}

/* A plugin that the daemon executed itself would outlive the daemon. */
static void call_fails_without_a_program(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);

	remove_program(p);
	place_plugin(p, "touch", "touch $D/was-run");
	AUTO(outcome_done) struct outcome out = run(s, p, "touch", (struct options){ 0 });
	assert_int_equal(out.r, -EAGAIN);
	assert_int_equal(err_wire(&out.e), HW_CNI_TRY_AGAIN);
	assert_string_equal(out.e.msg, "hawser-plugin, which runs all plugins, is missing: it is "
				       "neither in a plugin directory nor at /nowhere");
	assert_false(was_run(p));
}

static void call_fails_if_the_program_cannot_serve(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);

	remove_program(p);
	place_write(p, "bin/hawser-plugin", "#!/bin/sh\necho started >>$0.log; exit 1\n", 0755);
	place_plugin(p, "touch", "touch $D/was-run");
	for (int i = 0; i < 3; i++) {
		AUTO(outcome_done) struct outcome out = run(s, p, "touch", (struct options){ 0 });

		assert_int_equal(out.r, -EAGAIN);
		assert_int_equal(err_wire(&out.e), HW_CNI_TRY_AGAIN);
		assert_starts(out.e.msg, "hawser-plugin serve did not become ready");
		assert_contains(out.e.msg, "; it is started again after 5 s");
	}
	assert_false(was_run(p));
	autofree char *log = place_read(p, "bin/hawser-plugin.log");
	assert_string_equal(log, "started\n"); /* not started again at once */
	/* another file is tried at once */
	replace_by_copy(p, "hawser-plugin");
	AUTO(outcome_done) struct outcome next = run(s, p, "touch", (struct options){ 0 });
	assert_ok(next.r, next.e);
	assert_true(was_run(p));
}

/* Without a descriptor for the socket of a call, serve loses that call. */
static void serve_without_descriptors_is_replaced(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	const struct rlimit few = { 7, 7 };

	AUTO(outcome_done) struct outcome first = run(s, p, "noop", (struct options){ 0 });
	assert_ok(first.r, first.e);
	assert_int_equal(prlimit(find_served(p, false), RLIMIT_NOFILE, &few, NULL), 0);
	for (int i = 0; i < 3; i++) {
		AUTO(outcome_done) struct outcome next = run(s, p, "noop", (struct options){ 0 });

		assert_ok(next.r, next.e);
	}
}

/* As another user, because the limit does not apply to root. */
static int run_as_other_user(char **argv)
{
	const struct rlimit none = { 0, 0 };
	struct place p = { 0 };
	struct plugin_server *s;

	snprintf(p.bin, sizeof(p.bin), "%s/bin", argv[ARG_DIR]);
	snprintf(p.state, sizeof(p.state), "%s/state", argv[ARG_DIR]);
	if (setresgid(OTHER_USER, OTHER_USER, OTHER_USER) < 0 ||
	    setresuid(OTHER_USER, OTHER_USER, OTHER_USER) < 0)
		return 1;
	s = new_server(&p);
	struct outcome out = run(s, &p, "noop", (struct options){ 0 });
	if (out.r < 0 || prlimit(find_served(&p, false), RLIMIT_NPROC, &none, NULL) < 0)
		return 2;
	/* a process may be waiting for the next call already */
	for (int i = 0; i < 5 && out.r == 0; i++) {
		outcome_done(&out);
		out = run(s, &p, "noop", (struct options){ 0 });
	}
	plugin_server_free(s);
	return out.r == -EAGAIN && str_equal(out.e.msg, "fork: Resource temporarily unavailable")
		       ? 0
		       : 3;
}

static void call_fails_if_serve_cannot_fork(void **state)
{
	const struct place *p = *state;
	const char *const argv[] = { "other-user", p->dir, NULL };
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(p->state, OTHER_USER, OTHER_USER), 0);
	assert_int_equal(chmod(p->dir, 0755) | chmod(p->bin, 0755), 0);
	assert_int_equal(
		posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char *const *)argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- many calls ------------------------------------------------------------------------ */

static void many_threads(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	struct running calls[THREADS][4];

	place_plugin(p, "echo", "read x; echo \"$x\"");
	for (size_t i = 0; i < THREADS; i++) {
		const struct running kinds[] = {
			{ s, p, "noop", { 0 } },
			{ s, p, "echo", { .input = "hello\n" } },
			{ s, p, "sleeper", { .timeout_ms = 1 } },
			{ s, p, "missing", { 0 } },
		};

		for (size_t n = 0; n < ARRAY_SIZE(kinds); n++) {
			calls[i][n] = kinds[n];
			start(&calls[i][n]);
		}
	}
	for (size_t i = 0; i < THREADS; i++) {
		for (size_t n = 0; n < ARRAY_SIZE(calls[i]); n++)
			join(&calls[i][n]);
		assert_ok(calls[i][0].out.r, calls[i][0].out.e);
		assert_contains(calls[i][0].out.ran.output, "supportedVersions");
		assert_output(&calls[i][1].out, "hello\n");
		assert_true(calls[i][2].out.r == -ETIMEDOUT || calls[i][2].out.r == -ENOENT);
		assert_int_equal(calls[i][3].out.r, -ENOENT);
		for (size_t n = 0; n < ARRAY_SIZE(calls[i]); n++)
			outcome_done(&calls[i][n].out);
	}
}

static void calls_are_counted(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	AUTO(buf_done) struct buf text = { 0 };

	place_plugin(p, "a\"b", "exit 1");
	for (int i = 0; i < 3; i++) {
		AUTO(outcome_done) struct outcome good = run(s, p, "noop", (struct options){ 0 });
		AUTO(outcome_done)
		struct outcome failed = run(s, p, "a\"b", (struct options){ .command = "ADD" });

		assert_ok(good.r, good.e);
		assert_ok(failed.r, failed.e);
	}
	plugin_server_format_metrics(s, &text);
	assert_contains(text.data, "# TYPE hawser_plugin_call_seconds histogram\n");
	assert_contains(text.data, "hawser_plugin_call_seconds_count{plugin=\"noop\",command="
				   "\"VERSION\"} 3\n");
	assert_contains(text.data, "hawser_plugin_calls_failed_total{plugin=\"noop\",command="
				   "\"VERSION\"} 0\n");
	assert_contains(text.data, "hawser_plugin_calls_failed_total{plugin=\"a\\\"b\",command="
				   "\"ADD\"} 3\n");
}

/* The program does not become ready; meanwhile plugin_server_format_metrics() returns. */
static void metrics_do_not_wait_for_serve(void **state)
{
	const struct place *p = *state;
	AUTO(plugin_server_free) struct plugin_server *s = new_server(p);
	struct running c = { s, p, "noop", { 0 } };
	AUTO(buf_done) struct buf text = { 0 };
	pid_t pid;

	remove_program(p);
	place_write(p, "bin/hawser-plugin",
		    "#!/bin/sh\necho $$ >$0.new; mv $0.new $0.pid; exec sleep infinity\n", 0755);
	start(&c);
	pid = read_pid(p, "bin/hawser-plugin.pid");
	plugin_server_format_metrics(s, &text);
	assert_contains(text.data, "# TYPE hawser_plugin_calls_failed_total counter\n");
	assert_int_equal(kill(pid, SIGKILL), 0); /* it has not timed out meanwhile */
	join(&c);
	AUTO(outcome_done) struct outcome out = c.out;
	assert_int_equal(out.r, -EAGAIN);
}

#define SERVER_TEST(sentence, f)                                                                   \
	{                                                                                          \
		sentence, f, setup, place_teardown, NULL                                           \
	}

/* Options of the sanitizers in the programs that the tests start. At the end of a process, the leak
 * detector forks, and waits forever if that process is killed, as some tests do. Signals that the
 * sanitizers handle would end a process with a status. */
static void set_sanitizer_options(const char *variable)
{
	autofree char *options = str_printf("%s:detect_leaks=0:handle_segv=0:handle_abort=0",
					    str_or(getenv(variable), ""));

	setenv(variable, options, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVER_TEST("plugin-server: status, output and errors are those of exec",
			    results_are_those_of_exec),
		SERVER_TEST("plugin-server: large inputs have the result of exec", large_inputs),
		SERVER_TEST("plugin-server: an input that is no message is refused",
			    very_large_input_is_refused),
		SERVER_TEST("plugin-server: plugins of hawser-plugin are called without exec",
			    own_plugins_are_not_executed),
		SERVER_TEST(
			"plugin-server: plugins get the variables of a fixed list and HAWSER_STATE",
			environment_has_a_fixed_list),
		SERVER_TEST("plugin-server: an executed plugin inherits no descriptor",
			    plugin_inherits_no_descriptor),
		SERVER_TEST("plugin-server: a plugin that hangs is killed with its children",
			    plugin_that_hangs_is_killed),
		SERVER_TEST("plugin-server: a call can be cancelled", call_can_be_cancelled),
		SERVER_TEST("plugin-server: a plugin of hawser-plugin can be cancelled",
			    own_plugin_that_waits_is_killed),
		SERVER_TEST("plugin-server: a deadline applies also if serve is stopped",
			    deadline_applies_to_a_stopped_serve),
		SERVER_TEST("plugin-server: a plugin that prints without end is killed",
			    plugin_that_prints_without_end_is_killed),
		SERVER_TEST("plugin-server: a delegate that prints without end cannot fill the "
			    "memory",
			    delegate_that_prints_without_end_cannot_fill_the_memory),
		SERVER_TEST("plugin-server: a daemon that a plugin leaves behind survives",
			    daemon_that_a_plugin_leaves_survives),
		SERVER_TEST("plugin-server: the signal that ended a plugin is reported",
			    killed_plugin_is_reported),
		SERVER_TEST("plugin-server: children of a killed process are killed",
			    children_of_a_killed_process_are_killed),
		SERVER_TEST("plugin-server: a running call survives the end of serve",
			    call_survives_serve),
		SERVER_TEST("plugin-server: a call that did not start is repeated",
			    calls_are_repeated_if_serve_is_killed),
		SERVER_TEST("plugin-server: plugins end with a killed daemon, before its lock",
			    plugins_end_with_the_daemon),
		SERVER_TEST("plugin-server: plugins end with a killed daemon, also without serve",
			    plugins_end_with_the_daemon_without_serve),
		SERVER_TEST("plugin-server: a plugin of hawser-plugin ends with a killed daemon",
			    own_plugin_ends_with_the_daemon),
		SERVER_TEST("plugin-server: calls wait for the plugins of an earlier daemon",
			    calls_wait_for_an_earlier_daemon),
		SERVER_TEST("plugin-server: a replaced program is used by the next call",
			    replaced_program_is_used),
		SERVER_TEST("plugin-server: without a program no plugin is run, and calls fail",
			    call_fails_without_a_program),
		SERVER_TEST("plugin-server: if the program cannot serve, no plugin is run, and "
			    "calls fail",
			    call_fails_if_the_program_cannot_serve),
		SERVER_TEST("plugin-server: a serve without descriptors is replaced",
			    serve_without_descriptors_is_replaced),
		SERVER_TEST("plugin-server: a call fails at once if serve cannot fork",
			    call_fails_if_serve_cannot_fork),
		SERVER_TEST("plugin-server: many threads make calls at once", many_threads),
		SERVER_TEST("plugin-server: calls are counted by plugin and command",
			    calls_are_counted),
		SERVER_TEST("plugin-server: metrics do not wait until serve is ready",
			    metrics_do_not_wait_for_serve),
	};

	if (argc == ARGS)
		return run_daemon(argv);
	if (argc == ARG_DIR + 1)
		return run_as_other_user(argv);
	set_sanitizer_options("ASAN_OPTIONS");
	set_sanitizer_options("TSAN_OPTIONS");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
