/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/test-template.c - templates, filled and refused, and the configuration they make
 */
#include "cri/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cri/pod-cidr.h"

/* As containerd's documentation has it. */
static const char containerd[] =
	"{\"cniVersion\": \"0.3.1\", \"name\": \"net\", \"plugins\": [{\"type\": \"bridge\",\n"
	"\"ipam\": {\"type\": \"host-local\",\n"
	"\"ranges\": [{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}"
	"[{\"subnet\": \"{{$range}}\"}]{{end}}],\n"
	"\"routes\": [{{range $i, $route := .Routes}}{{if $i}}, {{end}}"
	"{\"dst\": \"{{$route}}\"}{{end}}]}}]}\n";

static char range4[] = "10.1.0.0/24", range6[] = "fd00::/64";
static char route4[] = "0.0.0.0/0", route6[] = "::/0";
static char *ranges[] = { range4, range6 }, *routes[] = { route4, route6 };

static int render(const char *text, size_t n, struct buf *ret, struct hw_err *e)
{
	const struct hw_strings some_ranges = { ranges, n }, some_routes = { routes, n };
	const struct template_data data = { n ? range4 : "", &some_ranges, &some_routes };

	return template_render(text, strlen(text), &data, ret, e);
}

static void gives(const char *text, size_t n, const char *expected)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	if (render(text, n, &b, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_string_equal(str_or(b.data, ""), expected);
}

static void refused(const char *text, const char *message)
{
	struct buf b = { 0 };
	struct hw_err e;

	assert_int_equal(render(text, 2, &b, &e), -EINVAL);
	assert_string_equal(e.msg, message);
	assert_null(b.data);
}

static void filled(void **state)
{
	(void)state;
	gives("", 1, "");
	gives("nothing { } to }} do", 1, "nothing { } to }} do");
	gives("a {{.PodCIDR}} b {{ .PodCIDR }}", 1, "a 10.1.0.0/24 b 10.1.0.0/24");
	gives("{{range .PodCIDRRanges}}<{{.}}>{{end}}", 2, "<10.1.0.0/24><fd00::/64>");
	gives("{{range $r := .Routes}}<{{$r}} {{$.PodCIDR}}>{{end}}", 2,
	      "<0.0.0.0/0 10.1.0.0/24><::/0 10.1.0.0/24>");
	gives("{{range $i,$r:=.Routes}}{{$i}}={{$r}};{{end}}", 2, "0=0.0.0.0/0;1=::/0;");
	gives("{{range .Routes}}x{{else}}none{{end}}.", 0, "none.");
	gives("{{range .Routes}}x{{else}}none{{end}}.", 2, "xx.");
	gives("{{if .PodCIDR}}yes{{else}}no{{end}}{{if .Routes}}!{{end}}", 0, "no");
	gives("{{if .PodCIDR}}yes{{else}}no{{end}}{{if .Routes}}!{{end}}", 1, "yes!");
	gives("a \n{{- /* words */ -}}\n b{{/* more */}}", 1, "ab");
	gives("{{range .Routes}}{{range $x := $.PodCIDRRanges}}{{$x}} {{end}}{{.}}|{{end}}", 2,
	      "10.1.0.0/24 fd00::/64 0.0.0.0/0|10.1.0.0/24 fd00::/64 ::/0|");
	gives("{{if .Routes}}{{range .Routes}}{{if .}}a{{end}}{{end}}{{else}}{{.PodCIDR}}{{end}}",
	      2, "aa");
}

static void broken(void **state)
{
	(void)state;
	refused("a\n{{.Pod", "line 2: {{ without }}");
	refused("{{.PodCidr}}", "line 1: {{.PodCidr}} is not known here");
	refused("\n\n{{range .Routes}}{{.PodCIDR}}{{end}}",
		"line 3: {{.PodCIDR}} is not known here");
	refused("{{$x}}", "line 1: {{$x}} is not known here");
	refused("{{.Routes}}", "line 1: {{.Routes}} is not known here");
	refused("{{range .PodCIDR}}{{end}}", "line 1: range over what is no list");
	refused("{{range .Routes}}", "line 1: {{end}} is missing");
	refused("{{end}}", "line 1: {{end}} or {{else}} of nothing");
	refused("{{if .Routes}}{{else}}{{else}}{{end}}", "line 1: {{end}} is missing");
	refused("{{if .Nothing}}{{end}}", "line 1: if of what is not known");
	refused("{{printf \"%s\" .PodCIDR}}",
		"line 1: expected a name, range, if, else or end between {{ and }}");
	refused("{{}}", "line 1: expected a name, range, if, else or end between {{ and }}");
}

static void endless(void **state)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct buf b = { 0 };
	struct hw_err e;

	(void)state;
	for (int i = 0; i < 15; i++)
		buf_puts(&text, "{{range $.Routes}}{{range $.Routes}}");
	assert_int_equal(render(text.data, 2, &b, &e), -EINVAL);
	assert_string_equal(e.msg, "line 1: too deep");
	text.len = 0;
	for (int i = 0; i < 13; i++)
		buf_puts(&text, "{{range $.Routes}}{{$.PodCIDR}}{{$.PodCIDR}}{{$.PodCIDR}}");
	for (int i = 0; i < 13; i++)
		buf_puts(&text, "{{.}}{{.}}{{.}}{{.}}{{.}}{{.}}{{.}}{{.}}{{end}}");
	assert_int_equal(render(text.data, 2, &b, &e), -EFBIG);
}

static void cidrs(void **state)
{
	AUTO(hw_strings_free) struct hw_strings parsed = { 0 };
	struct hw_strings unused = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(pod_cidr_parse("10.1.0.0/24,fd00::/64", &parsed, &e), 0);
	assert_int_equal(parsed.n, 2);
	assert_int_equal(pod_cidr_parse("", &unused, &e), 0);
	assert_int_equal(unused.n, 0);
	assert_int_equal(pod_cidr_parse("10.1.0.0", &unused, &e), -EINVAL);
	assert_true(str_starts(e.msg, "pod CIDR \"10.1.0.0\": "));
	assert_int_equal(pod_cidr_parse("10.1.0.0/24,", &unused, &e), -EINVAL);
}

static void put(const char *path, const char *text)
{
	struct hw_err e;

	assert_int_equal(file_replace(AT_FDCWD, path, text, strlen(text), 0600, 0, &e), 0);
}

static void written(void **state)
{
	autofree char *dir =
		str_printf("%s/test-template-XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	autofree char *template = NULL, *net = NULL, *list = NULL, *kept = NULL, *cidr = NULL;
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	template = str_printf("%s/template", dir);
	net = str_printf("%s/net.d", dir);
	list = str_printf("%s/" POD_CIDR_CONFLIST, net);
	kept = str_printf("%s/pod-cidr", dir);
	put(template, containerd);
	assert_int_equal(pod_cidr_render("10.1.0.0/24,fd00::/64", template, net, &e), 1);
	assert_int_equal(file_read(AT_FDCWD, list, 4096, &text, &e), 0);
	assert_non_null(strstr(text.data, "[{\"subnet\": \"10.1.0.0/24\"}], [{\"subnet\": "
					  "\"fd00::/64\"}]],\n\"routes\": [{\"dst\": "
					  "\"0.0.0.0/0\"}, {\"dst\": \"::/0\"}]"));
	assert_int_equal(pod_cidr_render("10.1.0.0/24,fd00::/64", template, net, &e), 0);
	put(template, "{\"name\": \"{{.PodCIDR}}\"}");
	assert_int_equal(pod_cidr_render("10.2.0.0/24", template, net, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "makes of the pod CIDR 10.2.0.0/24"));
	buf_done(&text);
	assert_int_equal(file_read(AT_FDCWD, list, 4096, &text, &e), 0);
	assert_non_null(strstr(text.data, "10.1.0.0/24"));

	assert_int_equal(pod_cidr_read(dir, &cidr, &e), 0);
	assert_int_equal(pod_cidr_save(dir, "10.1.0.0/24", &e), 0);
	assert_int_equal(pod_cidr_read(dir, &cidr, &e), 1);
	assert_string_equal(cidr, "10.1.0.0/24");
	unlink(template);
	unlink(list);
	unlink(kept);
	rmdir(net);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "template: what containerd's templates use is filled as Go does", filled },
		{ "template: all else is refused with its line", broken },
		{ "template: depth and steps are bounded", endless },
		{ "template: pod CIDRs are checked", cidrs },
		{ "template: a configuration is written when it is one, else the old stays",
		  written },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
