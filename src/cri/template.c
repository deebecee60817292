/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/template.c - a network configuration with gaps
 *
 * How:   the text is run where it stands: run_block() copies what is literal and
 *        does actions until the one that ends its block. A range runs the block
 *        behind it once per entry, from the same place; a block that is not
 *        wanted is run without output, to find its end.
 */
#include "cri/template.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define DEPTH_MAX  16
#define STEPS_MAX  100000
#define OUTPUT_MAX (1 << 20)
#define WORD_MAX   64

/* What a range has set for the block inside it. */
struct frame {
	const struct frame *up;
	char index_name[WORD_MAX], value_name[WORD_MAX]; /* with the $; "": none */
	size_t index;
	const char *value; /* NULL: an if, which changes nothing */
};

struct run {
	const char *text, *at, *end;
	const struct template_data *data;
	struct buf out;
	unsigned depth, steps;
};

/* A value: a list, or a text, or a number if it is neither. */
struct item {
	const struct hw_strings *list;
	const char *text;
	size_t number;
};

enum block_end { AT_END, AT_ELSE, AT_EOF };

static int fail(const struct run *run, const char *at, const char *what, struct hw_err *e)
{
	size_t line = 1;

	for (const char *c = run->text; c < at; c++)
		line += *c == '\n';
	return err_text(e, -EINVAL, "line %zu: %.200s", line, what);
}

/* ---- values ------------------------------------------------------------------------- */

static bool find_root(const struct run *run, const char *name, struct item *ret)
{
	*ret = (struct item){ 0 };
	if (str_equal(name, ".PodCIDR"))
		ret->text = run->data->pod_cidr;
	else if (str_equal(name, ".PodCIDRRanges"))
		ret->list = run->data->ranges;
	else if (str_equal(name, ".Routes"))
		ret->list = run->data->routes;
	return ret->text || ret->list;
}

static const struct frame *innermost(const struct frame *frame)
{
	while (frame && !frame->value)
		frame = frame->up;
	return frame;
}

static bool find_variable(const struct frame *frame, const char *name, struct item *ret)
{
	for (frame = innermost(frame); frame; frame = innermost(frame->up)) {
		if (str_equal(frame->value_name, name)) {
			*ret = (struct item){ .text = frame->value };
			return true;
		}
		if (str_equal(frame->index_name, name)) {
			*ret = (struct item){ .number = frame->index };
			return true;
		}
	}
	return false;
}

/* In a range "." is the entry, and "$" what "." was outside. */
static bool find_item(const struct run *run, const struct frame *frame, const char *name,
		      struct item *ret)
{
	const struct frame *inner = innermost(frame);

	if (str_starts(name, "$."))
		return find_root(run, name + 1, ret);
	if (name[0] == '$')
		return find_variable(frame, name, ret);
	if (!inner)
		return find_root(run, name, ret);
	*ret = (struct item){ .text = inner->value };
	return str_equal(name, ".");
}

static bool is_true(const struct item *item)
{
	if (item->list)
		return item->list->n > 0;
	return item->text ? *item->text != '\0' : item->number > 0;
}

/* ---- actions ------------------------------------------------------------------------ */

/* The text before the next action goes out; the action's words are in *ret, "" at the end. */
static int next_action(struct run *run, bool quiet, char **ret, const char **ret_at,
		       struct hw_err *e)
{
	const char *open = memmem(run->at, (size_t)(run->end - run->at), "{{", 2);
	const char *stop = open ? open : run->end, *close, *from, *to;

	if (++run->steps > STEPS_MAX || run->out.len > OUTPUT_MAX)
		return err_text(e, -EFBIG, "the template has no end");
	if (open && run->end - open > 3 && open[2] == '-' && isspace((unsigned char)open[3]))
		while (stop > run->at && isspace((unsigned char)stop[-1]))
			stop--;
	if (!quiet)
		buf_add(&run->out, run->at, (size_t)(stop - run->at));
	*ret_at = stop;
	if (!open) {
		run->at = run->end;
		return 0;
	}
	close = memmem(open + 2, (size_t)(run->end - open - 2), "}}", 2);
	if (!close)
		return fail(run, open, "{{ without }}", e);
	from = open + 2 + (open[2] == '-' && isspace((unsigned char)open[3]));
	to = close;
	run->at = close + 2;
	if (to - from >= 2 && to[-1] == '-' && isspace((unsigned char)to[-2])) {
		to--;
		while (run->at < run->end && isspace((unsigned char)*run->at))
			run->at++;
	}
	*ret_at = open;
	*ret = str_ncopy(from, (size_t)(to - from));
	return 1;
}

/* Words by white space; "," and ":=" are words. */
static void split(const char *text, struct hw_strings *words)
{
	while (*text) {
		size_t n = strcspn(text, " \t\r\n,:");

		if (n == 0 && (*text == ',' || str_starts(text, ":=")))
			n = *text == ',' ? 1 : 2;
		if (n > 0) {
			autofree char *word = str_ncopy(text, n);

			strings_add(words, word);
		}
		text += n ? n : 1;
	}
}

static int run_block(struct run *run, const struct frame *frame, bool quiet,
		     enum block_end *ret_end, struct hw_err *e);

/* A block, and the one behind its {{else}}, of which one is wanted. */
static int run_choice(struct run *run, const struct frame *frame, bool quiet, bool first,
		      struct hw_err *e)
{
	enum block_end end = AT_EOF;
	int r = run_block(run, frame, quiet || !first, &end, e);

	if (r == 0 && end == AT_ELSE)
		r = run_block(run, frame, quiet || first, &end, e);
	if (r == 0 && end != AT_END)
		return fail(run, run->at, "{{end}} is missing", e);
	return r;
}

static bool is_variable(const char *word)
{
	return word[0] == '$' && word[1] && word[1] != '.' && strlen(word) < WORD_MAX;
}

/* "range LIST", "range $v := LIST", "range $i, $v := LIST" */
static bool parse_range(const struct hw_strings *words, struct frame *frame)
{
	const char *value = words->n == 4 ? words->v[1] : words->n == 6 ? words->v[3] : "";
	const char *index = words->n == 6 ? words->v[1] : "";

	if (words->n == 6 && !(str_equal(words->v[2], ",") && is_variable(index)))
		return false;
	if (words->n != 2 && !(is_variable(value) && str_equal(words->v[words->n - 2], ":=")))
		return false;
	memcpy(frame->value_name, value, strlen(value) + 1);
	memcpy(frame->index_name, index, strlen(index) + 1);
	return true;
}

static int run_range(struct run *run, const struct hw_strings *words, struct frame *frame,
		     bool quiet, struct hw_err *e)
{
	const char *body = run->at;
	struct item item;
	int r = 0;

	if ((words->n != 2 && words->n != 4 && words->n != 6) || !parse_range(words, frame) ||
	    !find_item(run, frame->up, words->v[words->n - 1], &item) || !item.list)
		return fail(run, body, "range over what is no list", e);
	for (size_t i = 0; r == 0 && !quiet && i < item.list->n; i++) {
		frame->index = i;
		frame->value = item.list->v[i];
		run->at = body;
		r = run_choice(run, frame, false, true, e);
	}
	if (r == 0 && (quiet || item.list->n == 0)) {
		frame->value = "";
		r = run_choice(run, frame, quiet, false, e);
	}
	return r;
}

static int run_if(struct run *run, const struct hw_strings *words, struct frame *frame, bool quiet,
		  struct hw_err *e)
{
	struct item item;

	if (words->n != 2 || !find_item(run, frame->up, words->v[1], &item))
		return fail(run, run->at, "if of what is not known", e);
	return run_choice(run, frame, quiet, is_true(&item), e);
}

static int put_item(struct run *run, const struct frame *frame, const char *name, bool quiet,
		    const char *at, struct hw_err *e)
{
	struct item item;

	if (!find_item(run, frame, name, &item) || item.list) {
		autofree char *what = str_printf("{{%s}} is not known here", name);

		return fail(run, at, what, e);
	}
	if (quiet)
		return 0;
	if (item.text)
		buf_puts(&run->out, item.text);
	else
		buf_printf(&run->out, "%zu", item.number);
	return 0;
}

static int run_action(struct run *run, const struct frame *frame, const struct hw_strings *words,
		      bool quiet, const char *at, struct hw_err *e)
{
	struct frame inner = { .up = frame };

	if (words->n == 1)
		return put_item(run, frame, words->v[0], quiet, at, e);
	if (run->depth >= DEPTH_MAX)
		return fail(run, at, "too deep", e);
	if (words->n > 0 && str_equal(words->v[0], "range"))
		return run_range(run, words, &inner, quiet, e);
	if (words->n > 0 && str_equal(words->v[0], "if"))
		return run_if(run, words, &inner, quiet, e);
	return fail(run, at, "expected a name, range, if, else or end between {{ and }}", e);
}

static int run_block(struct run *run, const struct frame *frame, bool quiet,
		     enum block_end *ret_end, struct hw_err *e)
{
	int r = 0;

	run->depth++;
	while (r == 0) {
		AUTO(hw_strings_free) struct hw_strings words = { 0 };
		autofree char *text = NULL;
		const char *at = NULL;

		r = next_action(run, quiet, &text, &at, e);
		if (r <= 0 || !text) {
			*ret_end = AT_EOF;
			break;
		}
		r = 0;
		if (str_starts(text + strspn(text, " \t\r\n"), "/*"))
			continue;
		split(text, &words);
		if (words.n == 1 &&
		    (str_equal(words.v[0], "end") || str_equal(words.v[0], "else"))) {
			*ret_end = str_equal(words.v[0], "end") ? AT_END : AT_ELSE;
			break;
		}
		r = run_action(run, frame, &words, quiet, at, e);
	}
	run->depth--;
	return r;
}

/**
 * template_render() - fill the gaps
 * @text: of @len bytes
 * @data: what with
 * @ret:  the result
 * @e:    the error
 */
int template_render(const char *text, size_t len, const struct template_data *data, struct buf *ret,
		    struct hw_err *e)
{
	struct run run = { .text = text, .at = text, .end = text + len, .data = data };
	enum block_end end = AT_EOF;
	int r = run_block(&run, NULL, false, &end, e);

	if (r == 0 && end != AT_EOF)
		r = fail(&run, run.at, "{{end}} or {{else}} of nothing", e);
	if (r < 0) {
		buf_done(&run.out);
		return r;
	}
	*ret = run.out;
	return 0;
}
