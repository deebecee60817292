/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/field.h - JSON objects described by const tables
 *
 * What:  a table says which key goes to which member of a C struct; one table
 *        decodes, checks, fills in defaults, encodes and documents.
 * Rules: keys match as in Go's encoding/json: exact or case-folded, the last
 *        duplicate wins, null leaves the default, a wrong type is an error,
 *        unknown keys are ignored or kept (HW_REST).
 *        What decoding allocates is freed by hw_field_clear() with the table.
 *
 *	struct greet { char *word; int times; };
 *	static const struct hw_field greet_fields[] = {
 *		{ "word", HW_STRING, HW_AT(struct greet, word), .flags = HW_REQUIRED,
 *		  .help = "what to say" },
 *		{ "times", HW_INT, HW_AT(struct greet, times), .def = "1", .min = 1, .max = 9,
 *		  .help = "how often" },
 *		{ 0 },
 *	};
 */
#ifndef HAWSER_FIELD_H
#define HAWSER_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>
#include <hawser/err.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hw_type {
	HW_END,	      /* of the table */
	HW_BOOL,      /* bool */
	HW_BOOL_TEXT, /* bool; "true" and "false" as text, in any case, are taken too */
	HW_INT,	      /* int */
	HW_INT64,     /* int64_t */
	HW_UINT32,    /* uint32_t */
	HW_STRING,    /* char * */
	HW_IP,	      /* struct hw_ip; "" is none */
	HW_PREFIX,    /* struct hw_prefix */
	HW_STRINGS,   /* struct hw_strings */
	HW_MAP,	      /* struct hw_map: an object whose values are strings */
	HW_FLAGS,     /* struct hw_strings: an object of bools; the true keys, in order */
	HW_OBJECT,    /* a struct described by .sub */
	HW_LIST,      /* struct hw_list of structs described by .sub; null entries are dropped */
	HW_JSON,      /* char *: any value, as compact JSON text */
	HW_REST,      /* char *: an object of all keys that no other entry names, in order */
};

struct hw_strings {
	char **v;
	size_t n;
};

struct hw_map {
	char **keys;
	char **values;
	size_t n;
};

struct hw_list {
	void *v;
	size_t n;
};

enum {
	HW_REQUIRED = 1 << 0, /* decoding fails without it (absent, null or "") */
	HW_ALWAYS = 1 << 1,   /* encoded even when zero or empty */
	HW_SECRET = 1 << 2,   /* never part of a message or of printed configuration */
};

#define HW_AT(type, member)  offsetof(type, member)
#define HW_HAS(type, member) (offsetof(type, member) + 1)

struct hw_field {
	const char *name;
	enum hw_type type;
	size_t at; /* HW_AT(): the member that holds it */
	unsigned flags;
	size_t has;		    /* HW_HAS(): a bool member, "the key was there"; 0: none.
					 * With it, encoding goes by that bool and not by zero. */
	int64_t min, max;	    /* limits of a number, inclusive; both 0, or max below
					 * min: the type's own */
	const char *def;	    /* default, as JSON text */
	const struct hw_field *sub; /* HW_OBJECT, HW_LIST */
	size_t size;		    /* HW_LIST: sizeof the struct that sub describes */
	const char *help;	    /* one sentence for people */
};

enum {
	HW_JSON_PRETTY = 1 << 0, /* four spaces, as Go's plugins print */
	HW_JSON_SORTED = 1 << 1, /* keys in byte order at every level */
};

/**
 * hw_strings_free() - free the strings and empty the list
 * @strings: the list; the struct itself, which may be on the stack, is not freed
 */
HW_PUBLIC void hw_strings_free(struct hw_strings *strings);

/**
 * hw_field_decode() - JSON text into a struct
 * @table: ends with { 0 }
 * @json:  the text, @len bytes, an object
 * @out:   the struct; overwritten, not cleared, first
 *
 * On failure @out holds nothing that needs hw_field_clear().
 *
 * Return: 0, or -EINVAL with the path of the offending key in the message
 */
HW_PUBLIC int hw_field_decode(const struct hw_field *table, const char *json, size_t len, void *out,
			      struct hw_err *e);

/**
 * hw_field_encode() - a struct into JSON text
 * @table: ends with { 0 }
 * @in:    the struct
 * @flags: HW_JSON_PRETTY, HW_JSON_SORTED
 *
 * Keys in the order of the table, those of HW_REST last. What is zero or empty
 * is left out, unless it has HW_ALWAYS, .has or another default.
 * The text in HW_JSON and HW_REST members must be JSON. An object that may be
 * absent but has required keys needs .has, or its defaults are written alone.
 *
 * Return: the text, to be freed by the caller
 */
HW_PUBLIC char *hw_field_encode(const struct hw_field *table, const void *in, unsigned flags);

/**
 * hw_field_clear() - free what decoding allocated, and zero the members
 * @table: that the struct was decoded with
 * @out:   the struct
 */
HW_PUBLIC void hw_field_clear(const struct hw_field *table, void *out);

/**
 * hw_field_document() - the table as text for people
 * @table: ends with { 0 }
 *
 * One entry per key: name, type, default, limits, help; nested tables indented.
 *
 * Return: the text, to be freed by the caller
 */
HW_PUBLIC char *hw_field_document(const struct hw_field *table);

#ifdef __cplusplus
}
#endif

#endif
