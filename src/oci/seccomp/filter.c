/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/filter.c - compiled seccomp profiles: each is compiled once, and kept in a directory
 *
 * How:   a request for a profile joins a running one for the same profile, if there is one, and gets its
 *        result, also if that is an error. Otherwise it reads the file of the filter, or compiles it.
 */
#include "oci/seccomp/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/os/file.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"

#define NAME_DIGITS 64
#define NAME_SIZE   (NAME_DIGITS + 1)
#define FILTER_SIZE (BPF_MAXINSNS * sizeof(struct sock_filter)) /* bytes, at most */
#define TIMEOUT_MS  10000

/* A filter that is being read or compiled. */
struct work {
	struct work *next;
	char name[NAME_SIZE];
	size_t users; /* protected by the lock, as is .done */
	bool done;
	int r;
	struct buf filter;
	struct hw_err e;
};

struct filters {
	char *program, *dir;
	int timeout_ms;
	pthread_mutex_t lock;
	pthread_cond_t finished;
	struct work *works; /* that are not done */
};

int filters_new(const struct filters_options *options, struct filters **ret_filters,
		struct hw_err *e)
{
	AUTO(filters_free) struct filters *f = mem_new(sizeof(*f));
	int r;

	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->finished, NULL);
	f->program = str_copy(options->program);
	f->dir = str_copy(options->dir);
	f->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
	r = file_mkdirs(AT_FDCWD, f->dir, 0700, e);
	if (r == 0)
		r = file_sweep(AT_FDCWD, f->dir, e);
	if (r < 0)
		return r;
	*ret_filters = take_ptr(f);
	return 0;
}

void filters_free(struct filters *f)
{
	if (!f)
		return;
	pthread_cond_destroy(&f->finished);
	pthread_mutex_destroy(&f->lock);
	free(f->program);
	free(f->dir);
	free(f);
}

/* ---- checks ------------------------------------------------------------------------------------ */

/* As the kernel does: no jump leads out of the program, and the last instruction returns. */
static bool is_filter(const struct buf *b)
{
	const struct sock_filter *program = (const void *)b->data;
	size_t n = b->len / sizeof(*program);

	if (n == 0 || b->len > FILTER_SIZE || b->len % sizeof(*program) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t left = n - i - 1;

		if (BPF_CLASS(program[i].code) != BPF_JMP)
			continue;
		if (BPF_OP(program[i].code) == BPF_JA
			    ? program[i].k >= left
			    : program[i].jt >= left || program[i].jf >= left)
			return false;
	}
	return BPF_CLASS(program[n - 1].code) == BPF_RET;
}

/* ---- the directory ----------------------------------------------------------------------------- */

struct oldest {
	size_t n;
	struct timespec time;
	char name[NAME_SIZE];
};

static int find_oldest(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct oldest *oldest = ctx;
	struct stat st;

	(void)e;
	if (strlen(entry->name) != NAME_DIGITS ||
	    fstatat(entry->dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (oldest->n++ > 0 && (st.st_mtim.tv_sec > oldest->time.tv_sec ||
				(st.st_mtim.tv_sec == oldest->time.tv_sec &&
				 st.st_mtim.tv_nsec >= oldest->time.tv_nsec)))
		return 0;
	oldest->time = st.st_mtim;
	memcpy(oldest->name, entry->name, NAME_SIZE);
	return 0;
}

static char *path_of(const struct filters *f, const char *name)
{
	return str_printf("%s/%s", f->dir, name);
}

static int make_room(const struct filters *f, struct hw_err *e)
{
	for (;;) {
		struct oldest oldest = { 0 };
		autofree char *path = NULL;
		int r;

		r = file_walk(AT_FDCWD, f->dir, find_oldest, &oldest, e);
		if (r < 0 || oldest.n < FILTERS_MAX)
			return r;
		path = path_of(f, oldest.name);
		r = file_remove(AT_FDCWD, path, e);
		if (r < 0)
			return r;
	}
}

static int store(struct filters *f, const char *path, const struct buf *filter, struct hw_err *e)
{
	int r;

	pthread_mutex_lock(&f->lock); /* the directory never has more files than it may */
	r = make_room(f, e);
	if (r == 0)
		r = file_replace(AT_FDCWD, path, filter->data, filter->len, 0600, FILE_SYNC, e);
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* ---- compile ----------------------------------------------------------------------------------- */

/* The first line that hawser-seccomp has written to standard error says what is invalid. */
static int read_result(const struct proc_result *result, struct hw_err *e)
{
	const char *text = str_or(result->errors.data, "");
	char status[64];

	if (result->status == EXIT_FAILURE << 8 && *text)
		return err_text(e, -EINVAL, "%.*s", (int)strcspn(text, "\n"), text);
	if (result->status)
		return err_text(e, -EIO, "hawser-seccomp: %s",
				proc_status_format(result->status, status, sizeof(status)));
	if (!is_filter(&result->output))
		return err_text(e, -EIO, "hawser-seccomp: malformed filter of %zu bytes",
				result->output.len);
	return 0;
}

static int compile(const struct filters *f, const char *text, struct buf *ret, struct hw_err *e)
{
	const char *const env[] = { NULL };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	int r;

	r = proc_run(
		&(struct proc){
			.path = f->program,
			.env = env,
			.input = text,
			.input_len = strlen(text),
			.output_max = FILTER_SIZE,
			.cancel_fd = -1,
			.deadline = time_deadline(f->timeout_ms),
		},
		&result, e);
	if (r == -EFBIG)
		return err_text(e, -EINVAL, "the compiled filter has more than %d instructions",
				BPF_MAXINSNS);
	if (r == -ETIMEDOUT) /* the time of this program, not that of the client */
		return err_replace(e, -ETIMEDOUT, -EIO);
	if (r == 0)
		r = read_result(&result, e);
	if (r < 0)
		return r;
	*ret = result.output;
	result.output = (struct buf){ 0 };
	return 0;
}

/* A damaged file is replaced. */
static int read_or_compile(struct filters *f, const char *name, const char *text, struct buf *ret,
			   struct hw_err *e)
{
	AUTO(buf_done) struct buf filter = { 0 };
	autofree char *path = path_of(f, name);
	int r;

	r = file_read_if_exists(AT_FDCWD, path, FILTER_SIZE, &filter, e);
	if (r < 0 && r != -EFBIG)
		return r;
	if (r != 1 || !is_filter(&filter)) {
		buf_done(&filter);
		r = compile(f, text, &filter, e);
		if (r == 0)
			r = store(f, path, &filter, e);
		if (r < 0)
			return r;
	}
	*ret = filter;
	filter = (struct buf){ 0 };
	return 0;
}

/* The file of hawser-seccomp: another version may compile another filter for a profile. */
static char *identify(const char *program)
{
	struct stat st;

	if (stat(program, &st) < 0)
		return str_copy("");
	return str_printf("%ju %jd %jd.%09ld", (uintmax_t)st.st_ino, (intmax_t)st.st_size,
			  (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* ---- requests ---------------------------------------------------------------------------------- */

/* Return: true if the caller has to do the work */
static bool join(struct filters *f, const char *name, struct work **ret)
{
	struct work *w = f->works;
	bool first;

	while (w && !str_equal(w->name, name))
		w = w->next;
	first = !w;
	if (first) {
		w = mem_new(sizeof(*w));
		memcpy(w->name, name, NAME_SIZE);
		w->next = f->works;
		f->works = w;
	}
	w->users++;
	*ret = w;
	return first;
}

static void finish(struct filters *f, struct work *w)
{
	struct work **at = &f->works;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->done = true;
	pthread_cond_broadcast(&f->finished);
}

/* The result of the work; the last user frees it. */
static int leave(struct work *w, struct buf *ret_filter, struct hw_err *e)
{
	int r = w->r;

	if (r < 0)
		*e = w->e;
	else
		buf_add(ret_filter, w->filter.data, w->filter.len);
	if (--w->users == 0) {
		buf_done(&w->filter);
		free(w);
	}
	return r;
}

int filters_get(struct filters *f, const struct profile *p, struct buf *ret_filter,
		struct hw_err *e)
{
	autofree char *text = profile_encode(p), *program = identify(f->program);
	const char *const parts[] = { profile_machine(NULL)->name, program, text };
	char name[NAME_SIZE];
	struct work *w;
	int r;

	if (strlen(text) > PROFILE_MAX)
		return err_text(e, -EINVAL, "more than %d bytes", PROFILE_MAX);
	hash_parts(parts, ARRAY_SIZE(parts), NAME_DIGITS, name);
	pthread_mutex_lock(&f->lock);
	if (join(f, name, &w)) {
		pthread_mutex_unlock(&f->lock);
		r = read_or_compile(f, name, text, &w->filter, &w->e);
		pthread_mutex_lock(&f->lock);
		w->r = r;
		finish(f, w);
	}
	while (!w->done)
		pthread_cond_wait(&f->finished, &f->lock);
	r = leave(w, ret_filter, e);
	pthread_mutex_unlock(&f->lock);
	return r;
}
