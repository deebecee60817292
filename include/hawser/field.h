/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/field.h - JSON objects described by const tables
 *
 * What:  a table maps keys to members of a C struct. The same table is used to
 *        decode with checks and defaults, to encode and to document.
 * Rules: keys match as in Go's encoding/json: exactly, or with upper and lower
 *        case ignored. If a key occurs more than once, the last one is used.
 *        null means the default. A value of the wrong type is an error. Unknown
 *        keys are ignored, or kept with HW_REST.
 *        hw_field_clear() frees the memory that decoding allocated.
 *
 *	struct greet { char *word; int times; };
 *	static const struct hw_field greet_fields[] = {
 *		{ "word", HW_STRING, HW_AT(struct greet, word), .flags = HW_REQUIRED,
 *		  .help = "the greeting" },
 *		{ "times", HW_INT, HW_AT(struct greet, times), .def = "1", .min = 1, .max = 9,
 *		  .help = "number of greetings" },
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
	HW_END,	      /* end of the table */
	HW_BOOL,      /* bool */
	HW_BOOL_TEXT, /* bool; also the strings "true" and "false", in upper or lower case */
	HW_INT,	      /* int */
	HW_INT64,     /* int64_t */
	HW_UINT32,    /* uint32_t */
	HW_STRING,    /* char * */
	HW_IP,	      /* struct hw_ip; "" is an unset address */
	HW_PREFIX,    /* struct hw_prefix */
	HW_STRINGS,   /* struct hw_strings */
	HW_MAP,	      /* struct hw_map: an object whose values are strings */
	HW_FLAGS,     /* struct hw_strings: in an object, the keys whose value is true, in order */
	HW_OBJECT,    /* a struct described by .sub */
	HW_LIST,      /* struct hw_list of structs described by .sub; null entries are dropped */
	HW_JSON,      /* char *: any value, as compact JSON text */
	HW_REST,      /* char *: all unknown keys, in order, as the JSON text of an object */
	HW_UINT32S,   /* struct hw_list of uint32_t; null entries are dropped */
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
	HW_REQUIRED = 1 << 0, /* decoding fails if the key is absent, null or "" */
	HW_ALWAYS = 1 << 1,   /* the key is encoded even if its value is zero or empty */
	HW_SECRET = 1 << 2,   /* the value is never shown in messages or printed configurations */
};

#define HW_AT(type, member)  offsetof(type, member)
#define HW_HAS(type, member) (offsetof(type, member) + 1)

struct hw_field {
	const char *name;
	enum hw_type type;
	size_t at; /* HW_AT(): the member that holds the value */
	unsigned flags;
	/* HW_HAS(): a bool member. Decoding sets it to whether the key was present; encoding
	 * writes the key only if this member is true. 0: no such member */
	size_t has;
	/* Limits of a number, inclusive. If both are 0, the limits of the type apply. If max is
	 * below min, there is no maximum except that of the type. */
	int64_t min, max;
	const char *def;	    /* default, as JSON text; NULL: zero or empty */
	const struct hw_field *sub; /* HW_OBJECT, HW_LIST */
	size_t size;		    /* HW_LIST: size of the struct that sub describes */
	const char *help;	    /* one sentence for the documentation */
};

enum {
	HW_JSON_PRETTY = 1 << 0, /* indented by four spaces, as upstream's plugins print JSON */
	HW_JSON_SORTED = 1 << 1, /* keys in byte order at every level */
};

/**
 * hw_strings_free() - free the strings and empty the list
 * @strings: the list, may be NULL; the struct itself is not freed
 */
HW_PUBLIC void hw_strings_free(struct hw_strings *strings);

/**
 * hw_field_decode() - decode JSON text into a struct
 * @table: the field table; ends with { 0 }
 * @json:  the text of an object, @len bytes
 * @out:   the struct; its old contents are overwritten without being freed
 *
 * On failure @out holds nothing that needs hw_field_clear().
 *
 * Return: 0; -EINVAL with the path of the invalid key in the message; -EFBIG if
 * the text is too large or nested too deeply
 */
HW_PUBLIC int hw_field_decode(const struct hw_field *table, const char *json, size_t len, void *out,
			      struct hw_err *e);

/**
 * hw_field_encode() - encode a struct as JSON text
 * @table: the field table; ends with { 0 }
 * @in:    the struct
 * @flags: HW_JSON_PRETTY, HW_JSON_SORTED
 *
 * Keys are in the order of the table; the keys of HW_REST are last. Zero and
 * empty values are left out, unless the field has HW_ALWAYS, .has or a default
 * that is not empty. The text in HW_JSON and HW_REST members must be JSON. An
 * optional object with required keys must have .has: without it, an absent
 * object would be encoded with its defaults but without its required keys.
 *
 * Return: the text, to be freed by the caller
 */
HW_PUBLIC char *hw_field_encode(const struct hw_field *table, const void *in, unsigned flags);

/**
 * hw_field_clear() - free the memory that decoding allocated, and zero the members
 * @table: the table that the struct was decoded with
 * @out:   the struct
 */
HW_PUBLIC void hw_field_clear(const struct hw_field *table, void *out);

/**
 * hw_field_document() - format a table as documentation
 * @table: the field table; ends with { 0 }
 *
 * One line per key: name, type, limits, default, help; nested tables are indented.
 *
 * Return: the text, to be freed by the caller
 */
HW_PUBLIC char *hw_field_document(const struct hw_field *table);

#ifdef __cplusplus
}
#endif

#endif
