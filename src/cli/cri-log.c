/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cri-log.c - the log format of CRI
 */
#include "cli/cri-log.h"

#include <string.h>

/* A word of a line. */
struct word {
	const char *at;
	size_t len;
};

/* Takes the word before the next space. Return: false if there is no space */
static bool take_word(const char **at, const char *end, struct word *ret)
{
	const char *space;

	space = memchr(*at, ' ', (size_t)(end - *at));
	if (!space)
		return false;
	*ret = (struct word){ *at, (size_t)(space - *at) };
	*at = space + 1;
	return true;
}

static bool is_word(const struct word *word, const char *text)
{
	return word->len == strlen(text) && memcmp(word->at, text, word->len) == 0;
}

bool log_parse(const char *line, size_t len, struct log_entry *ret)
{
	const char *end = line + len;
	struct word time, stream, tags;

	if (!take_word(&line, end, &time) || !time.len || !take_word(&line, end, &stream) ||
	    !take_word(&line, end, &tags))
		return false;
	if (!is_word(&stream, "stdout") && !is_word(&stream, "stderr"))
		return false;
	if (!tags.len || (tags.at[0] != 'F' && tags.at[0] != 'P') ||
	    (tags.len > 1 && tags.at[1] != ':'))
		return false;
	*ret = (struct log_entry){
		.time = time.at,
		.time_len = time.len,
		.is_stderr = is_word(&stream, "stderr"),
		.is_part = tags.at[0] == 'P',
		.text = line,
		.len = (size_t)(end - line),
	};
	return true;
}
