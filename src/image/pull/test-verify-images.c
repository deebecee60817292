/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/test-verify-images.c - verify stored images; a shell script acts as hawser-layer
 *
 * Repairs need a registry: they are tested in test/cri/test_cri_verify.py.
 */
#include "image/pull/verify-images.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <sys/stat.h>

#include "base/time.h"
#include "image/protocol/job.h"
#include "image/store/test-store.h"

/* Appends a line to the file "calls"; a file with the content "bad" is damaged, and one with "fails" makes
 * it exit. A message is its
 * length in four bytes, its type, for which %o stands, and its text (image/protocol/wire.c). */
#define SCRIPT                                                                                     \
	"#!/bin/sh\n"                                                                              \
	"echo \"$1\" >>\"${0%%/*}/calls\"\n"                                                       \
	"[ \"$(cat \"$2/root/f\")\" != fails ] || exit 1\n"                                        \
	"report='{\"files\":1}'\n"                                                                 \
	"[ \"$(cat \"$2/root/f\")\" != bad ] ||\n"                                                 \
	"	report='{\"files\":1,\"damaged_count\":1,\"damaged\":[\"f: content changed\"]}'\n"       \
	"printf \"\\\\$(printf %%o ${#report})\\\\0\\\\0\\\\0\\\\%o%%s\" \"$report\" >&0\n"

/* Writes "GOOD" or "DAMAGED", and what is damaged, for each layer. */
static int note_result(void *ctx, const struct verify_result *result, struct hw_err *e)
{
	static const char *const names[] = { "GOOD", "DAMAGED", "REPAIRED", "NOT_CHECKED" };

	(void)e;
	buf_printf(ctx, "%s %s;", names[result->state],
		   result->report->damaged.n ? result->report->damaged.v[0] : "-");
	return 0;
}

/* Return: result of verify_images(); *ret_results is the text that note_result() has written */
static int verify(struct test_store *p, const char *const *images, bool repair,
		  struct buf *ret_results, struct hw_err *e)
{
	autofree char *program = str_printf("%s/hawser-layer", p->path);
	autofree char *script = str_printf(SCRIPT, (unsigned)JOB_REPORT);
	struct verify_request request = {
		.store = p->store,
		.images = images,
		.repair = repair,
		.how = { program, -1, TIME_NEVER },
		.report = note_result,
		.ctx = ret_results,
	};

	assert_int_equal(file_replace(AT_FDCWD, program, script, strlen(script), 0755, 0, e), 0);
	while (images && images[request.n_images])
		request.n_images++;
	return verify_images(&request, e);
}

static off_t size_of_calls(const struct test_store *p)
{
	autofree char *path = str_printf("%s/calls", p->path);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void test_states(void **state)
{
	struct test_store *p = *state;
	AUTO(buf_done) struct buf all = { 0 }, one = { 0 };
	char id[DIGEST_TEXT], other[DIGEST_TEXT];
	struct hw_err e;

	add_image(p, "", LIST("one", "bad"), LIST("docker.io/library/a:1"), id);
	add_image(p, "me", LIST("one"), LIST("docker.io/library/b:1"), other);
	assert_int_equal(verify(p, LIST("a:1"), false, &one, &e), 0);
	assert_string_equal(one.data, "GOOD -;DAMAGED f: content changed;");
	assert_int_equal(size_of_calls(p), 2 * strlen("verify\n"));
	/* three layers in two images, but one layer is shared */
	assert_int_equal(verify(p, NULL, false, &all, &e), 0);
	assert_int_equal(size_of_calls(p), 4 * strlen("verify\n"));
	assert_non_null(strstr(all.data, "GOOD -;DAMAGED f: content changed;"));
	assert_int_equal(all.len, one.len + strlen("GOOD -;"));
}

static void test_unknown_image(void **state)
{
	AUTO(buf_done) struct buf none = { 0 };
	struct hw_err e;

	assert_int_equal(verify(*state, LIST("missing"), true, &none, &e), -ENODATA);
	assert_string_equal(e.msg, "image \"missing\" not found");
	assert_int_equal(verify(*state, NULL, true, &none, &e), 0);
	assert_int_equal(none.len, 0);
}

static void test_lost_layer(void **state)
{
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery recovery = { 0 };
	AUTO(buf_done) struct buf results = { 0 };
	autofree char *layer = NULL, *database = str_printf("%s/images.db", p->path);
	char id[DIGEST_TEXT], chain[DIGEST_TEXT];
	struct hw_err e;

	digest_of("one", 3, chain);
	layer = str_printf("%s/layers/%s", p->path, chain + strlen("sha256:"));
	add_image(p, "", LIST("one", "two"),
		  LIST("docker.io/library/a:1", "docker.io/library/a@" DIGEST_A), id);
	test_store_close(p);
	assert_int_equal(remove_tree(AT_FDCWD, layer, &e), 0);
	test_store_open(p);
	assert_int_equal(verify(p, LIST("a:1@" DIGEST_A), false, &results, &e), 0);
	assert_string_equal(results.data, "DAMAGED root: missing;GOOD -;");
	/* the recovery finds no file with the row of the layer */
	test_store_close(p);
	assert_int_equal(remove_tree(AT_FDCWD, database, &e), 0);
	test_store_open(p);
	assert_int_equal(store_recover(p->store, &recovery, &e), 0);
	buf_done(&results);
	assert_int_equal(verify(p, LIST("a:1@" DIGEST_A), false, &results, &e), 0);
	assert_string_equal(results.data, "DAMAGED a layer is missing;");
}

static void test_repair_without_digest(void **state)
{
	struct test_store *p = *state;
	AUTO(buf_done) struct buf results = { 0 };
	char id[DIGEST_TEXT];
	struct hw_err e;

	add_image(p, "", LIST("one", "bad"), LIST("docker.io/library/a:1"), id);
	assert_int_equal(verify(p, LIST("a:1"), true, &results, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "cannot repair: no repository digest is known"));
	assert_string_equal(results.data, "GOOD -;DAMAGED f: content changed;");
}

/* Neither a layer that hawser-layer cannot verify nor a failed repair ends the verification. */
static void test_errors(void **state)
{
	struct test_store *p = *state;
	const char *const names[] = { "a:1", "b:1", "c:1", NULL };
	char id[DIGEST_TEXT];
	struct hw_err e;

	add_image(p, "", LIST("fails", "one"), LIST("docker.io/library/a:1"), id);
	add_image(p, "", LIST("bad"), LIST("docker.io/library/b:1"), id);
	add_image(p, "", LIST("one"), LIST("docker.io/library/c:1"), id);
	for (int repair = 0; repair < 2; repair++) {
		AUTO(buf_done) struct buf results = { 0 };

		assert_int_equal(verify(p, names, repair, &results, &e), -EIO);
		assert_non_null(strstr(e.msg, "hawser-layer"));
		assert_int_equal(strstr(e.msg, "2 images") != NULL, repair);
		assert_string_equal(results.data, "DAMAGED f: content changed;GOOD -;");
	}
}

/* As if the client no longer existed. */
static int refuse_result(void *ctx, const struct verify_result *result, struct hw_err *e)
{
	(void)result;
	(*(int *)ctx)++;
	return err_text(e, -EPIPE, "refused");
}

static void test_refused_result(void **state)
{
	struct test_store *p = *state;
	AUTO(buf_done) struct buf results = { 0 };
	autofree char *program = str_printf("%s/hawser-layer", p->path);
	int calls = 0;
	struct verify_request request = {
		.store = p->store,
		.how = { program, -1, TIME_NEVER },
		.report = refuse_result,
		.ctx = &calls,
	};
	char id[DIGEST_TEXT];
	struct hw_err e;

	add_image(p, "", LIST("one"), LIST("docker.io/library/a:1"), id);
	add_image(p, "", LIST("two"), LIST("docker.io/library/b:1"), id);
	assert_int_equal(verify(p, NULL, false, &results, &e), 0); /* writes the program */
	assert_int_equal(verify_images(&request, &e), -EPIPE);
	assert_int_equal(calls, 1);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, test_store_new, test_store_delete                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("verify: each layer is reported, and verified once for all images",
		     test_states),
		TEST("verify: an unknown image is not found", test_unknown_image),
		TEST("verify: an image that lost a layer is found by name, tag and digest",
		     test_lost_layer),
		TEST("verify: an image without a digest cannot be repaired",
		     test_repair_without_digest),
		TEST("verify: an image that cannot be verified or repaired does not stop the "
		     "others",
		     test_errors),
		TEST("verify: a result that cannot be reported ends the verification",
		     test_refused_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
