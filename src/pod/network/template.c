/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/template.c - templates of a network configuration, like containerd's cni_conf_template
 *
 * How:   the text is interpreted in place. render_block() copies literal text and
 *        executes actions, up to the action that ends its block. A range renders the block
 *        after it once per element, from the same position; a block that is not
 *        selected is rendered without output, to find its end.
 */
#include "pod/network/template.h"

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

/* Variables that a range defines for the block inside it. */
struct template_scope {
	const struct template_scope *up;
	char index_name[WORD_MAX], value_name[WORD_MAX]; /* including the $; "" if not named */
	size_t index;
	const char *value; /* NULL for an if, which defines no variables */
};

struct renderer {
	const char *text, *at, *end;
	const struct template_data *data;
	struct buf out;
	unsigned depth, steps;
};

/* A list or a text; a number if both are NULL. */
struct template_value {
	const struct hw_strings *list;
	const char *text;
	size_t number;
};

enum block_end { AT_END, AT_ELSE, AT_EOF };

static int fail_at(const struct renderer *t, const char *at, const char *what, struct hw_err *e)
{
	size_t line = 1;

	for (const char *c = t->text; c < at; c++)
		line += *c == '\n';
	return err_text(e, -EINVAL, "line %zu: %.200s", line, what);
}

/* ---- values ------------------------------------------------------------------------- */

static bool find_field(const struct renderer *t, const char *name, struct template_value *ret)
{
	*ret = (struct template_value){ 0 };
	if (str_equal(name, ".PodCIDR"))
		ret->text = t->data->pod_cidr;
	else if (str_equal(name, ".PodCIDRRanges"))
		ret->list = t->data->ranges;
	else if (str_equal(name, ".Routes"))
		ret->list = t->data->routes;
	return ret->text || ret->list;
}

/* The scope of the innermost range, skipping ifs. */
static const struct template_scope *innermost_range(const struct template_scope *scope)
{
	while (scope && !scope->value)
		scope = scope->up;
	return scope;
}

static bool find_variable(const struct template_scope *scope, const char *name,
			  struct template_value *ret)
{
	for (scope = innermost_range(scope); scope; scope = innermost_range(scope->up)) {
		if (str_equal(scope->value_name, name)) {
			*ret = (struct template_value){ .text = scope->value };
			return true;
		}
		if (str_equal(scope->index_name, name)) {
			*ret = (struct template_value){ .number = scope->index };
			return true;
		}
	}
	return false;
}

/* Inside a range, "." is the current element. "$" always stands for the "." outside all ranges. */
static bool find_value(const struct renderer *t, const struct template_scope *scope,
		       const char *name, struct template_value *ret)
{
	const struct template_scope *inner = innermost_range(scope);

	if (str_starts(name, "$."))
		return find_field(t, name + 1, ret);
	if (name[0] == '$')
		return find_variable(scope, name, ret);
	if (!inner)
		return find_field(t, name, ret);
	*ret = (struct template_value){ .text = inner->value };
	return str_equal(name, ".");
}

static bool is_true(const struct template_value *value)
{
	if (value->list)
		return value->list->n > 0;
	return value->text ? *value->text != '\0' : value->number > 0;
}

/* ---- actions ------------------------------------------------------------------------ */

/* Outputs the text before the next action, unless @quiet. Return: 1, *ret is the text of the action
 * and *ret_at its position; 0 at the end of the template */
static int next_action(struct renderer *t, bool quiet, char **ret, const char **ret_at,
		       struct hw_err *e)
{
	const char *open = memmem(t->at, (size_t)(t->end - t->at), "{{", 2);
	const char *stop = open ? open : t->end, *close, *from, *to;

	if (++t->steps > STEPS_MAX || t->out.len > OUTPUT_MAX)
		return err_text(e, -EFBIG,
				"too many steps (limit %d) or too much output (limit %d bytes)",
				STEPS_MAX, OUTPUT_MAX);
	if (open && t->end - open > 3 && open[2] == '-' && isspace((unsigned char)open[3]))
		while (stop > t->at && isspace((unsigned char)stop[-1]))
			stop--;
	if (!quiet)
		buf_add(&t->out, t->at, (size_t)(stop - t->at));
	*ret_at = stop;
	if (!open) {
		t->at = t->end;
		return 0;
	}
	close = memmem(open + 2, (size_t)(t->end - open - 2), "}}", 2);
	if (!close)
		return fail_at(t, open, "unterminated {{", e);
	from = open + 2 + (open[2] == '-' && isspace((unsigned char)open[3]));
	to = close;
	t->at = close + 2;
	if (to - from >= 2 && to[-1] == '-' && isspace((unsigned char)to[-2])) {
		to--;
		while (t->at < t->end && isspace((unsigned char)*t->at))
			t->at++;
	}
	*ret_at = open;
	*ret = str_ncopy(from, (size_t)(to - from));
	return 1;
}

/* Splits at white space; "," and ":=" are words of their own. */
static void split_words(const char *text, struct hw_strings *words)
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

static int render_block(struct renderer *t, const struct template_scope *scope, bool quiet,
			enum block_end *ret_end, struct hw_err *e);

/* Renders a block and the block after its {{else}}, if any. Only one of them produces output: the
 * first block if @first is true. The second one is outside a range. */
static int render_choice(struct renderer *t, const struct template_scope *scope, bool quiet,
			 bool first, struct hw_err *e)
{
	enum block_end end = AT_EOF;
	int r;

	r = render_block(t, scope, quiet || !first, &end, e);
	if (r == 0 && end == AT_ELSE)
		r = render_block(t, scope->up, quiet || first, &end, e);
	if (r == 0 && end != AT_END)
		return fail_at(t, t->at, "missing {{end}}", e);
	return r;
}

static bool is_variable(const char *word)
{
	return word[0] == '$' && word[1] && word[1] != '.' && strlen(word) < WORD_MAX;
}

/* "range LIST", "range $v := LIST", "range $i, $v := LIST" */
static bool parse_range(const struct hw_strings *words, struct template_scope *scope)
{
	const char *value = words->n == 4 ? words->v[1] : words->n == 6 ? words->v[3] : "";
	const char *index = words->n == 6 ? words->v[1] : "";

	if (words->n == 6 && !(str_equal(words->v[2], ",") && is_variable(index)))
		return false;
	if (words->n != 2 && !(is_variable(value) && str_equal(words->v[words->n - 2], ":=")))
		return false;
	memcpy(scope->value_name, value, strlen(value) + 1);
	memcpy(scope->index_name, index, strlen(index) + 1);
	return true;
}

static int render_range(struct renderer *t, const struct hw_strings *words,
			struct template_scope *scope, bool quiet, const char *at, struct hw_err *e)
{
	const char *body = t->at;
	struct template_value value;
	int r = 0;

	if ((words->n != 2 && words->n != 4 && words->n != 6) || !parse_range(words, scope) ||
	    !find_value(t, scope->up, words->v[words->n - 1], &value) || !value.list)
		return fail_at(t, at, "range: expected a list", e);
	for (size_t i = 0; r == 0 && !quiet && i < value.list->n; i++) {
		scope->index = i;
		scope->value = value.list->v[i];
		t->at = body;
		r = render_choice(t, scope, false, true, e);
	}
	if (r == 0 && (quiet || value.list->n == 0)) {
		scope->value = "";
		r = render_choice(t, scope, quiet, false, e);
	}
	return r;
}

static int put_value(struct renderer *t, const struct template_scope *scope, const char *name,
		     bool quiet, const char *at, struct hw_err *e)
{
	struct template_value value;
	bool found = find_value(t, scope, name, &value);

	if (!found || value.list) {
		autofree char *what = str_printf("{{%s}}: %s", name,
						 found ? "cannot output a list" : "unknown value");

		return fail_at(t, at, what, e);
	}
	if (quiet)
		return 0;
	if (value.text)
		buf_puts(&t->out, value.text);
	else
		buf_printf(&t->out, "%zu", value.number);
	return 0;
}

static int execute_action(struct renderer *t, const struct template_scope *scope,
			  const struct hw_strings *words, bool quiet, const char *at,
			  struct hw_err *e)
{
	struct template_scope inner = { .up = scope };
	struct template_value value;

	if (words->n == 1)
		return put_value(t, scope, words->v[0], quiet, at, e);
	if (t->depth >= DEPTH_MAX)
		return fail_at(t, at, "blocks nested too deeply", e);
	if (words->n > 0 && str_equal(words->v[0], "range"))
		return render_range(t, words, &inner, quiet, at, e);
	if (words->n == 0 || !str_equal(words->v[0], "if"))
		return fail_at(t, at, "expected a name, range, if, else or end between {{ and }}",
			       e);
	if (words->n != 2 || !find_value(t, scope, words->v[1], &value))
		return fail_at(t, at, "if: unknown value", e);
	return render_choice(t, &inner, quiet, is_true(&value), e);
}

static int render_block(struct renderer *t, const struct template_scope *scope, bool quiet,
			enum block_end *ret_end, struct hw_err *e)
{
	int r = 0;

	t->depth++;
	while (r == 0) {
		AUTO(hw_strings_free) struct hw_strings words = { 0 };
		autofree char *text = NULL;
		const char *at = NULL;

		r = next_action(t, quiet, &text, &at, e);
		if (r <= 0 || !text) {
			*ret_end = AT_EOF;
			break;
		}
		r = 0;
		if (str_starts(text + strspn(text, " \t\r\n"), "/*"))
			continue;
		split_words(text, &words);
		if (words.n == 1 &&
		    (str_equal(words.v[0], "end") || str_equal(words.v[0], "else"))) {
			*ret_end = str_equal(words.v[0], "end") ? AT_END : AT_ELSE;
			break;
		}
		r = execute_action(t, scope, &words, quiet, at, e);
	}
	t->depth--;
	return r;
}

int template_render(const char *text, size_t len, const struct template_data *data, struct buf *ret,
		    struct hw_err *e)
{
	struct renderer t = { .text = text, .at = text, .end = text + len, .data = data };
	enum block_end end = AT_EOF;
	int r;

	r = render_block(&t, NULL, false, &end, e);
	if (r == 0 && end != AT_EOF)
		r = fail_at(&t, t.at, "unexpected {{end}} or {{else}}", e);
	if (r < 0) {
		buf_done(&t.out);
		return r;
	}
	*ret = t.out;
	return 0;
}
