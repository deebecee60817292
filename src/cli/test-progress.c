/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-progress.c - progress of pulls and archives as text
 */
#include "cli/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/text.h"

static char digest[] = "sha256:0123456789abcdef";
static char evil[] = "\033]0;x\a";

static void update(struct progress *p, const char *name, enum progress_state state, uint64_t done,
		   uint64_t total, int expected)
{
	const struct progress_layer layer = { (char *)name, state, done, total };
	struct hw_err e;

	assert_int_equal(progress_update(p, &layer, &e), expected);
}

static void test_changes(void **state)
{
	AUTO(progress_done) struct progress p = { 0 };

	(void)state;
	update(&p, "sha256:a", PROGRESS_WAITING, 0, 10, 1);
	update(&p, "sha256:a", PROGRESS_DOWNLOADING, 0, 10, 1);
	update(&p, "sha256:a", PROGRESS_DOWNLOADING, 5, 10, 0);
	update(&p, "sha256:b", PROGRESS_PRESENT, 0, 10, 1);
	assert_int_equal(p.n, 2);
	assert_int_equal(p.layers[0].done, 5);
}

static void test_limit(void **state)
{
	AUTO(progress_done) struct progress p = { 0 };
	struct hw_err e;

	(void)state;
	for (int i = 0; i <= PROGRESS_LAYERS_MAX; i++) {
		autofree char *name = str_printf("sha256:%d", i);
		const struct progress_layer layer = { .digest = name };

		assert_int_equal(progress_update(&p, &layer, &e),
				 i < PROGRESS_LAYERS_MAX ? 1 : -E2BIG);
	}
}

static void test_lines(void **state)
{
	static const struct {
		struct progress_layer layer;
		size_t width;
		const char *line;
	} cases[] = {
		{ { digest, PROGRESS_WAITING, 0, 2000 }, 80, "0123456789ab  waiting      2.0 kB" },
		{ { digest, PROGRESS_WAITING, 0, 0 }, 80, "0123456789ab  waiting    " },
		{ { digest, PROGRESS_DOWNLOADING, 1000, 2000 },
		  80,
		  "0123456789ab  downloading  [==============>             ]  1.0 kB / 2.0 kB" },
		{ { digest, PROGRESS_DOWNLOADING, 0, 2000 },
		  54,
		  "0123456789ab  downloading  [>          ]  0 B / 2.0 kB" },
		{ { digest, PROGRESS_UNPACKING, 3000, 2000 },
		  54,
		  "0123456789ab  unpacking    [========]  3.0 kB / 2.0 kB" },
		{ { digest, PROGRESS_DOWNLOADING, 1000, 2000 },
		  45,
		  "0123456789ab  downloading  1.0 kB / 2.0 kB" },
		{ { digest, PROGRESS_DOWNLOADING, 1000, 2000 }, 20, "0123456789ab  dow..." },
		{ { digest, PROGRESS_DOWNLOADING, 1000, 0 },
		  80,
		  "0123456789ab  downloading  1.0 kB" },
		{ { digest, PROGRESS_DONE, 2000, 2000 }, 80, "0123456789ab  done         2.0 kB" },
		{ { digest, (enum progress_state)99, 0, 0 }, 0, "0123456789ab  busy       " },
		{ { evil, PROGRESS_DONE, 0, 0 }, 0, "?]0;x?  done       " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *line = progress_line(&cases[i].layer, cases[i].width);

		assert_string_equal(line, cases[i].line);
		assert_true(!cases[i].width || text_width(line) <= cases[i].width);
	}
}

static void test_bytes(void **state)
{
	autofree char *half = progress_bytes("loading", 1000, 2000, 40);
	autofree char *unknown = progress_bytes("saving", 1000, 0, 40);
	autofree char *narrow = progress_bytes("loading", 1000, 2000, 12);

	(void)state;
	assert_string_equal(half, "loading  [======>     ]  1.0 kB / 2.0 kB");
	assert_string_equal(unknown, "saving  1.0 kB");
	assert_string_equal(narrow, "loading  ...");
}

static void test_summary(void **state)
{
	AUTO(progress_done) struct progress p = { 0 };
	autofree char *none = progress_summary(&p), *some = NULL;

	(void)state;
	update(&p, "a", PROGRESS_DONE, 0, 1000, 1);
	update(&p, "b", PROGRESS_PRESENT, 0, 5000, 1);
	update(&p, "c", PROGRESS_DOWNLOADING, 500, 3000, 1);
	some = progress_summary(&p);
	assert_string_equal(none, "0 of 0 layers");
	assert_string_equal(some, "2 of 3 layers, 1.5 kB / 4.0 kB");
}

static void test_redraw(void **state)
{
	AUTO(progress_done) struct progress p = { 0 };
	AUTO(buf_done) struct buf first = { 0 }, second = { 0 };

	(void)state;
	update(&p, "sha256:a", PROGRESS_WAITING, 0, 0, 1);
	update(&p, "sha256:b", PROGRESS_DONE, 0, 0, 1);
	progress_frame(&p, 80, 24, &first);
	progress_frame(&p, 80, 24, &second);
	assert_string_equal(first.data, "a  waiting    \033[K\nb  done       \033[K\n"
					"1 of 2 layers\033[K\n\033[J");
	assert_true(str_starts(second.data, "\r\033[3A"));
	assert_string_equal(second.data + 5, first.data);
}

/* A frame with more lines than the terminal could not be redrawn in place. */
static void test_height(void **state)
{
	AUTO(progress_done) struct progress p = { 0 };

	(void)state;
	for (int i = 0; i < 30; i++) {
		autofree char *name = str_printf("sha256:layer%d", i);

		update(&p, name, i < 25 ? PROGRESS_DONE : PROGRESS_WAITING, 0, 0, 1);
	}
	for (size_t height = 1; height < 40; height++) {
		AUTO(buf_done) struct buf frame = { 0 };

		progress_frame(&p, 80, height, &frame);
		assert_true(p.drawn < height || height < 4);
		if (height == 10) {
			assert_null(strstr(frame.data, "layer24 "));
			assert_non_null(strstr(frame.data, "layer29 "));
		}
	}
	assert_int_equal(p.drawn, 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "progress: an update reports a change of state, but not a change of bytes",
		  test_changes },
		{ "progress: too many layers are refused", test_limit },
		{ "progress: a line fits the width, and has a bar if there is space", test_lines },
		{ "progress: an archive has a bar if its size is known", test_bytes },
		{ "progress: the summary does not count the bytes of layers that were already "
		  "present",
		  test_summary },
		{ "progress: a frame is drawn over the previous one", test_redraw },
		{ "progress: a frame that would be too high shows only unfinished layers",
		  test_height },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
