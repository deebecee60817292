/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/text.c - human-readable sizes, ages and IDs, safe text, misspellings
 */
#include "cli/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

#define SHORT_ID 12
#define TYPO_MAX 31
#define MINUTE	 60
#define HOUR	 3600
#define DAY	 86400
#define YEAR	 (365 * DAY)

/* ---- safe text ------------------------------------------------------------------- */

static uint32_t code_point(const char *s, size_t len)
{
	static const unsigned char first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)s[0] & first[len];

	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

/* Characters that change the order or the line breaks of the text around them. */
static bool is_layout(uint32_t c)
{
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

char *text_clean(const char *s)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (s = str_or(s, ""); *s;) {
		size_t len = str_utf8_len(s);
		uint32_t c = len ? code_point(s, len) : 0;

		if (c == '\n' || c == '\t')
			buf_putc(&b, ' ');
		else if (is_control(c) || is_layout(c))
			buf_putc(&b, '?');
		else
			buf_add(&b, s, len);
		s += len ? len : 1;
	}
	return buf_take(&b);
}

char *text_json_safe(const char *s)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (*s) {
		size_t len = str_utf8_len(s);
		uint32_t c = len ? code_point(s, len) : 0xfffd;

		if (c != '\n' && (is_control(c) || is_layout(c) || c == 0xfffd))
			buf_printf(&b, "\\u%04x", (unsigned)c);
		else
			buf_add(&b, s, len);
		s += len ? len : 1;
	}
	return buf_take(&b);
}

char *text_short_id(const char *id)
{
	autofree char *clean = text_clean(id);
	const char *colon = strchr(clean, ':');
	const char *digits = colon ? colon + 1 : clean;

	return str_ncopy(digits, strnlen(digits, SHORT_ID));
}

/* ---- widths ---------------------------------------------------------------------- */

static size_t next_character(const char *s)
{
	size_t len = str_utf8_len(s);

	return len ? len : 1;
}

size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s += next_character(s))
		n++;
	return n;
}

char *text_cut(const char *s, size_t width)
{
	const char *end = s, *dots = width < 3 ? "" : "...";
	size_t keep = width - strlen(dots);

	if (text_width(s) <= width)
		return str_copy(s);
	while (keep--)
		end += next_character(end);
	return str_printf("%.*s%s", (int)(end - s), s, dots);
}

/* ---- numbers --------------------------------------------------------------------- */

char *text_size(uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	uint64_t unit = 1000;
	size_t i = 0;

	if (bytes < 1000)
		return str_printf("%u B", (unsigned)bytes);
	/* 999950 is rounded to 1.0 MB */
	while (i + 1 < ARRAY_SIZE(units) && bytes >= unit * 1000 - unit / 20) {
		unit *= 1000;
		i++;
	}
	return str_printf("%.1f %s", (double)bytes / (double)unit, units[i]);
}

char *text_age(int64_t seconds)
{
	static const struct {
		int64_t below, unit;
		char letter;
	} spans[] = {
		{ 2 * MINUTE, 1, 's' }, { 2 * HOUR, MINUTE, 'm' }, { 2 * DAY, HOUR, 'h' },
		{ 2 * YEAR, DAY, 'd' }, { INT64_MAX, YEAR, 'y' },
	};
	size_t i = 0;

	if (seconds < 0)
		seconds = 0;
	while (i + 1 < ARRAY_SIZE(spans) && seconds >= spans[i].below)
		i++;
	return str_printf("%lld%c", (long long)(seconds / spans[i].unit), spans[i].letter);
}

/* Accepts "Z", "+02:00" and "-02:00". */
static bool parse_zone(const char *s, int64_t *ret_seconds)
{
	static const char shape[] = "+dd:dd";

	*ret_seconds = 0;
	if (str_equal(s, "Z") || str_equal(s, "z"))
		return true;
	if ((s[0] != '+' && s[0] != '-') || strlen(s) != strlen(shape))
		return false;
	for (size_t i = 1; shape[i]; i++)
		if (shape[i] == ':' ? s[i] != ':' : s[i] < '0' || s[i] > '9')
			return false;
	*ret_seconds =
		((s[1] - '0') * 10 + s[2] - '0') * HOUR + ((s[4] - '0') * 10 + s[5] - '0') * MINUTE;
	if (s[0] == '-')
		*ret_seconds = -*ret_seconds;
	return true;
}

bool text_time(const char *rfc3339, int64_t *ret_seconds)
{
	struct tm tm = { 0 };
	const char *rest;
	int64_t zone;

	rest = rfc3339 ? strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!rest)
		return false;
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (!parse_zone(rest, &zone))
		return false;
	*ret_seconds = (int64_t)timegm(&tm) - zone;
	return true;
}

/* ---- misspellings ------------------------------------------------------------------ */

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: edits[i][j] is the number of edits between the first i characters of @word
 * and the first j characters of @name. */
bool text_is_typo(const char *word, const char *name)
{
	size_t edits[TYPO_MAX + 1][TYPO_MAX + 1];
	size_t n_word = strlen(word), n_name = strlen(name);

	if (n_word > TYPO_MAX || n_name > TYPO_MAX)
		return false;
	for (size_t i = 0; i <= n_word; i++)
		for (size_t j = 0; j <= n_name; j++) {
			size_t *n = &edits[i][j];

			if (i == 0 || j == 0) {
				*n = i + j;
				continue;
			}
			*n = edits[i - 1][j - 1] + (word[i - 1] != name[j - 1]);
			*n = min(*n, 1 + min(edits[i - 1][j], edits[i][j - 1]));
			if (i > 1 && j > 1 && word[i - 1] == name[j - 2] &&
			    word[i - 2] == name[j - 1])
				*n = min(*n, edits[i - 2][j - 2] + 1);
		}
	return edits[n_word][n_name] <= n_name / 3;
}
