/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/resolv.c - read resolv.conf into the dns of a result
 *
 * The file is parsed as in upstream: # and ; start a comment only at the beginning of a line;
 * nameserver and domain take one word; if there are several domain lines, the last one is used;
 * search and options take all words of all their lines.
 */
#include "plugins/host-local/resolv.h"

#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/os/file.h"
#include "base/str.h"

#define RESOLV_MAX (1 << 20)
#define BLANKS	   " \t\r\v\f"

static void parse_line(char *line, struct hw_dns *dns)
{
	char *rest = line, *key = NULL, *word;

	while ((word = strsep(&rest, BLANKS))) {
		if (!*word)
			continue;
		if (!key && (*word == '#' || *word == ';'))
			return;
		if (!key) {
			key = word;
		} else if (str_equal(key, "search")) {
			strings_add(&dns->search, word);
		} else if (str_equal(key, "options")) {
			strings_add(&dns->options, word);
		} else if (str_equal(key, "nameserver")) {
			strings_add(&dns->nameservers, word);
			return;
		} else if (str_equal(key, "domain")) {
			free(dns->domain);
			dns->domain = str_copy(word);
			return;
		}
	}
}

void resolv_parse(char *text, struct hw_dns *dns)
{
	char *line;

	while ((line = strsep(&text, "\n")))
		parse_line(line, dns);
}

int resolv_read(const char *path, struct hw_dns *dns, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read(AT_FDCWD, path, RESOLV_MAX, &text, e);
	if (r >= 0 && text.data)
		resolv_parse(text.data, dns);
	return r;
}
