/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/test-template.c - templates of a network configuration
 */
#include "pod/network/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static char range4[] = "10.1.0.0/24", range6[] = "fd00::/64";
static char route4[] = "0.0.0.0/0", route6[] = "::/0";
static char *ranges[] = { range4, range6 }, *routes[] = { route4, route6 };

static int render(const char *text, size_t n, struct buf *ret, struct hw_err *e)
{
	const struct hw_strings some_ranges = { ranges, n }, some_routes = { routes, n };
	const struct template_data data = { n ? range4 : "", &some_ranges, &some_routes };

	return template_render(text, strlen(text), &data, ret, e);
}

static void expect_output(const char *text, size_t n, const char *expected)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	if (render(text, n, &b, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_string_equal(str_or(b.data, ""), expected);
}

static void expect_error(const char *text, const char *message)
{
	struct buf b = { 0 };
	struct hw_err e;

	assert_int_equal(render(text, 2, &b, &e), -EINVAL);
	assert_string_equal(e.msg, message);
	assert_null(b.data);
}

static void valid_templates(void **state)
{
	(void)state;
	expect_output("", 1, "");
	expect_output("nothing { } to }} do", 1, "nothing { } to }} do");
	expect_output("a {{.PodCIDR}} b {{ .PodCIDR }}", 1, "a 10.1.0.0/24 b 10.1.0.0/24");
	expect_output("{{range .PodCIDRRanges}}<{{.}}>{{end}}", 2, "<10.1.0.0/24><fd00::/64>");
	expect_output("{{range $r := .Routes}}<{{$r}} {{$.PodCIDR}}>{{end}}", 2,
		      "<0.0.0.0/0 10.1.0.0/24><::/0 10.1.0.0/24>");
	expect_output("{{range $i,$r:=.Routes}}{{$i}}={{$r}};{{end}}", 2, "0=0.0.0.0/0;1=::/0;");
	expect_output("{{range .Routes}}x{{else}}none{{end}}.", 0, "none.");
	expect_output("{{range .Routes}}x{{else}}none{{end}}.", 2, "xx.");
	/* {{else}} is outside the range */
	expect_output("{{range .Routes}}x{{else}}none{{.PodCIDR}}{{end}}.", 0, "none.");
	expect_output("{{range .Routes}}x{{else}}none{{.PodCIDR}}{{end}}.", 2, "xx.");
	expect_output("{{range .Routes}}{{range $.Routes}}x{{else}}{{.}}{{end}}{{end}}.", 2,
		      "xxxx.");
	expect_output("{{if .PodCIDR}}yes{{else}}no{{end}}{{if .Routes}}!{{end}}", 0, "no");
	expect_output("{{if .PodCIDR}}yes{{else}}no{{end}}{{if .Routes}}!{{end}}", 1, "yes!");
	expect_output("a \n{{- /* words */ -}}\n b{{/* more */}}", 1, "ab");
	expect_output("{{range .Routes}}{{range $x := $.PodCIDRRanges}}{{$x}} {{end}}{{.}}|{{end}}",
		      2, "10.1.0.0/24 fd00::/64 0.0.0.0/0|10.1.0.0/24 fd00::/64 ::/0|");
	expect_output(
		"{{if .Routes}}{{range .Routes}}{{if .}}a{{end}}{{end}}{{else}}{{.PodCIDR}}{{end}}",
		2, "aa");
}

static void invalid_templates(void **state)
{
	(void)state;
	expect_error("a\n{{.Pod", "line 2: unterminated {{");
	expect_error("{{.PodCidr}}", "line 1: {{.PodCidr}}: unknown value");
	expect_error("\n\n{{range .Routes}}{{.PodCIDR}}{{end}}",
		     "line 3: {{.PodCIDR}}: unknown value");
	expect_error("{{$x}}", "line 1: {{$x}}: unknown value");
	expect_error("{{.Routes}}", "line 1: {{.Routes}}: cannot output a list");
	expect_error("{{range .PodCIDR}}{{end}}", "line 1: range: expected a list");
	expect_error("\n{{range\n.PodCIDR}}{{end}}", "line 2: range: expected a list");
	expect_error("{{range $r := .Routes}}{{else}}{{$r}}{{end}}",
		     "line 1: {{$r}}: unknown value");
	expect_error("{{range .Routes}}", "line 1: missing {{end}}");
	expect_error("{{end}}", "line 1: unexpected {{end}} or {{else}}");
	expect_error("{{if .Routes}}{{else}}{{else}}{{end}}", "line 1: missing {{end}}");
	expect_error("{{if .Nothing}}{{end}}", "line 1: if: unknown value");
	expect_error("{{if\n.Nothing}}{{end}}", "line 1: if: unknown value");
	expect_error("{{printf \"%s\" .PodCIDR}}",
		     "line 1: expected a name, range, if, else or end between {{ and }}");
	expect_error("{{}}", "line 1: expected a name, range, if, else or end between {{ and }}");
}

static void bounds(void **state)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct buf b = { 0 };
	struct hw_err e;

	(void)state;
	for (int i = 0; i < 15; i++)
		buf_puts(&text, "{{range $.Routes}}{{range $.Routes}}");
	assert_int_equal(render(text.data, 2, &b, &e), -EINVAL);
	assert_string_equal(e.msg, "line 1: blocks nested too deeply");
	text.len = 0;
	for (int i = 0; i < 13; i++)
		buf_puts(&text, "{{range $.Routes}}{{$.PodCIDR}}{{$.PodCIDR}}{{$.PodCIDR}}");
	for (int i = 0; i < 13; i++)
		buf_puts(&text, "{{.}}{{.}}{{.}}{{.}}{{.}}{{.}}{{.}}{{.}}{{end}}");
	assert_int_equal(render(text.data, 2, &b, &e), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "template: the actions of containerd's templates give the same output as in Go",
		  valid_templates },
		{ "template: unsupported or malformed actions are rejected with their line",
		  invalid_templates },
		{ "template: a template with too deep nesting or too many steps is rejected",
		  bounds },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
