/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/print.c - results on standard output
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/text.h"

#define NAME_WIDTH 14

/**
 * print_json() - a JSON value, which is freed
 */
void print_json(struct value *v)
{
	autofree char *text = value_format(v, HW_JSON_PRETTY);
	autofree char *safe = text_json_safe(text);

	printf("%s\n", safe);
	value_free(v);
}

/**
 * print_field() - a line of a description; nothing if there is no value
 */
void print_field(const char *name, const char *value)
{
	autofree char *clean = text_clean(value);

	if (*clean)
		printf("%-*s%s\n", NAME_WIDTH, name, clean);
}

/**
 * print_field_taken() - the same of a value that is freed
 */
void print_field_taken(const char *name, char *value)
{
	print_field(name, value);
	free(value);
}

/**
 * print_list() - the name on the first line only
 */
void print_list(const char *name, char **values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		print_field(i ? "" : name, values[i]);
}
