/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/json.c - protobuf messages as JSON, for --json
 */
#include "cli/json.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

/* "repo_tags" becomes "repoTags". */
static char *make_key(const char *name)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (; *name; name++) {
		if (*name == '_' && name[1])
			buf_putc(&b, (char)toupper((unsigned char)*++name));
		else
			buf_putc(&b, *name);
	}
	return buf_take(&b);
}

/* Return: NULL if the field is an absent message */
static struct value *convert_field(const ProtobufCFieldDescriptor *f, const void *at)
{
	const ProtobufCBinaryData *bytes = at;
	const ProtobufCEnumValue *known;
	const ProtobufCMessage *message;
	autofree char *text = NULL;
	struct value *v = NULL;
	struct hw_err ignored;

	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		message = *(ProtobufCMessage *const *)at;
		return message ? message_to_json(message) : NULL;
	case PROTOBUF_C_TYPE_STRING:
		return value_new_string(str_or(*(char *const *)at, ""));
	case PROTOBUF_C_TYPE_BYTES:
		text = base64_encode(bytes->data, bytes->len);
		return value_new_string(text);
	case PROTOBUF_C_TYPE_BOOL:
		return value_new_bool(*(const protobuf_c_boolean *)at);
	case PROTOBUF_C_TYPE_ENUM:
		known = protobuf_c_enum_descriptor_get_value(f->descriptor, *(const int *)at);
		return known ? value_new_string(known->name) : value_new_int(*(const int *)at);
	case PROTOBUF_C_TYPE_INT64:
		return value_new_int(*(const int64_t *)at);
	case PROTOBUF_C_TYPE_UINT64:
		if (*(const uint64_t *)at <= INT64_MAX)
			return value_new_int(*(const int64_t *)at);
		text = str_printf("%" PRIu64, *(const uint64_t *)at);
		return value_new_string(text);
	case PROTOBUF_C_TYPE_UINT32:
		return value_new_int(*(const uint32_t *)at);
	case PROTOBUF_C_TYPE_DOUBLE:
		/* JSON has no NaN and no infinity: they become strings */
		text = str_printf("%.17g", *(const double *)at);
		return value_parse(text, strlen(text), &v, &ignored) == 0 ? v
									  : value_new_string(text);
	default: /* CRI and hawser.v1 use no other scalar types */
		return value_new_int(*(const int32_t *)at);
	}
}

static size_t element_size(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return sizeof(int64_t);
	default:
		return sizeof(int32_t);
	}
}

/* protobuf-c has no flag for map entries. They are recognized by the name that protoc gives to their
 * type. */
static bool is_map(const ProtobufCFieldDescriptor *f)
{
	const ProtobufCMessageDescriptor *type = f->descriptor;

	return f->type == PROTOBUF_C_TYPE_MESSAGE && str_ends(type->short_name, "Entry") &&
	       type->n_fields == 2 && str_equal(type->fields[0].name, "key") &&
	       type->fields[0].type == PROTOBUF_C_TYPE_STRING &&
	       str_equal(type->fields[1].name, "value");
}

static struct value *convert_repeated(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	struct value *all = is_map(f) ? value_new_object() : value_new_array();
	size_t n = *(const size_t *)((const char *)m + f->quantifier_offset);
	const char *at = *(char *const *)((const char *)m + f->offset);

	for (size_t i = 0; i < n; i++, at += element_size(f)) {
		const ProtobufCFieldDescriptor *fields;
		const char *entry, *key;
		struct value *v;

		if (!is_map(f)) {
			value_append(all, convert_field(f, at));
			continue;
		}
		entry = *(const char *const *)at;
		fields = ((const ProtobufCMessageDescriptor *)f->descriptor)->fields;
		key = *(char *const *)(entry + fields[0].offset);
		v = convert_field(&fields[1], entry + fields[1].offset);
		value_set(all, str_or(key, ""), v ? v : value_new_null());
	}
	return all;
}

struct value *message_to_json(const ProtobufCMessage *message)
{
	struct value *object = value_new_object();

	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &message->descriptor->fields[i];
		autofree char *key = make_key(f->name);
		struct value *v = f->label == PROTOBUF_C_LABEL_REPEATED
					  ? convert_repeated(message, f)
					  : convert_field(f, (const char *)message + f->offset);

		if (v)
			value_set(object, key, v);
	}
	return object;
}

void json_parse_info(struct value *status)
{
	struct value *info = value_new_object(), *v;
	const char *key;

	for (void *i = NULL; value_next(value_get(status, "info"), &i, &key, &v);) {
		const char *text = str_or(value_string(v), "");
		struct value *parsed = NULL;
		struct hw_err ignored;

		if (value_parse(text, strlen(text), &parsed, &ignored) < 0)
			parsed = value_ref(v);
		value_set(info, key, parsed);
	}
	value_set(status, "info", info);
}
