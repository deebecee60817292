/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/test-cri-v1.c - comparison of proto/cri-v1.proto with upstream's CRI definition
 *
 * How:   proto/cri-v1.tsv was generated from upstream's file; the descriptors are
 *        compiled from ours. All messages and enums are reached from the two services.
 *        Each row must have a descriptor, and there must be as many descriptors as
 *        rows.
 *        A descriptor does not say whether a call streams; the test searches for
 *        "stream" in the text of the .proto file.
 */
#include "api/cri-v1.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"

#define PACKAGE	 "runtime.v1."
#define FILE_MAX (1 << 20)

/* ---- compiled descriptors ----------------------------------------------------------- */

static const ProtobufCServiceDescriptor *const services[] = {
	&runtime__v1__runtime_service__descriptor,
	&runtime__v1__image_service__descriptor,
};

struct compiled {
	struct map *messages; /* maps from a name without its package to a descriptor */
	struct map *enums;
};

static bool is_map_entry(const ProtobufCMessageDescriptor *m)
{
	return m->n_fields == 2 && str_ends(m->name, "Entry") &&
	       str_equal(m->fields[0].name, "key");
}

static const char *short_name(const char *name)
{
	assert_true(str_starts(name, PACKAGE));
	return name + strlen(PACKAGE);
}

/* Adds a message and all messages and enums in it. The recursion is at most a dozen levels deep. */
static void add_message(struct compiled *c, const ProtobufCMessageDescriptor *m)
{
	if (!is_map_entry(m)) {
		if (map_find(c->messages, short_name(m->name)))
			return;
		map_set(c->messages, short_name(m->name), (void *)m);
	}
	for (unsigned i = 0; i < m->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->fields[i];
		const ProtobufCEnumDescriptor *e = f->descriptor;

		if (f->type == PROTOBUF_C_TYPE_MESSAGE)
			add_message(c, f->descriptor);
		else if (f->type == PROTOBUF_C_TYPE_ENUM)
			map_set(c->enums, short_name(e->name), (void *)e);
	}
}

/* ---- table -------------------------------------------------------------------------- */

enum { KIND, MESSAGE, FIELD, NUMBER, TYPE, LABEL, COLUMNS };

struct fixture {
	struct compiled compiled;
	struct hw_strings lines;
	char *proto;
};

static char *read_source(const char *name)
{
	autofree char *path = str_printf("%s/%s", str_or(getenv("HAWSER_SRC"), "."), name);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	if (file_read(AT_FDCWD, path, FILE_MAX, &text, &e) < 0)
		fail_msg("%s", e.msg);
	return buf_take(&text);
}

static int fixture_setup(void **state)
{
	struct fixture *fx = mem_new(sizeof(*fx));
	autofree char *table = read_source("proto/cri-v1.tsv");

	strings_split(table, '\n', &fx->lines);
	fx->proto = read_source("proto/cri-v1.proto");
	fx->compiled.messages = map_new(NULL);
	fx->compiled.enums = map_new(NULL);
	for (size_t s = 0; s < ARRAY_SIZE(services); s++) {
		for (unsigned i = 0; i < services[s]->n_methods; i++) {
			add_message(&fx->compiled, services[s]->methods[i].input);
			add_message(&fx->compiled, services[s]->methods[i].output);
		}
	}
	*state = fx;
	return 0;
}

static int fixture_teardown(void **state)
{
	struct fixture *fx = *state;

	hw_strings_free(&fx->lines);
	map_free(fx->compiled.messages);
	map_free(fx->compiled.enums);
	free(fx->proto);
	free(fx);
	return 0;
}

/* Calls check() for each row of the given kind. Return: the number of rows */
static size_t each_row(struct fixture *fx, const char *kind,
		       void (*check)(struct fixture *fx, char *const *row))
{
	size_t n = 0;

	for (size_t i = 0; i < fx->lines.n; i++) {
		AUTO(hw_strings_free) struct hw_strings row = { 0 };

		strings_split(fx->lines.v[i], '\t', &row);
		if (row.n < COLUMNS || !str_equal(row.v[KIND], kind))
			continue;
		check(fx, row.v);
		n++;
	}
	return n;
}

static long long number_of(char *const *row)
{
	long long n;

	assert_true(str_to_int64(row[NUMBER], 0, INT32_MAX, &n));
	return n;
}

/* ---- services ----------------------------------------------------------------------- */

static const ProtobufCMethodDescriptor *find_method(const char *service, const char *name)
{
	for (size_t s = 0; s < ARRAY_SIZE(services); s++)
		if (str_equal(short_name(services[s]->name), service))
			return protobuf_c_service_descriptor_get_method_by_name(services[s], name);
	return NULL;
}

static void check_rpc(struct fixture *fx, char *const *row)
{
	const ProtobufCMethodDescriptor *m = find_method(row[MESSAGE], row[FIELD]);
	autofree char *text = str_printf("rpc %s(", row[FIELD]);
	autofree char *types = NULL;
	const char *in_proto = strstr(fx->proto, text), *stream, *end;

	if (!m || !in_proto) {
		fail_msg("missing call %s.%s", row[MESSAGE], row[FIELD]);
		return;
	}
	types = str_printf("%s -> %s", short_name(m->input->name), short_name(m->output->name));
	assert_string_equal(types, row[TYPE]);
	end = strchr(in_proto, ';');
	stream = strstr(in_proto, "returns (stream ");
	assert_string_equal(stream && stream < end ? "server-stream" : "unary", row[LABEL]);
}

static void has_every_call(void **state)
{
	size_t n = each_row(*state, "rpc", check_rpc);

	assert_int_equal(n, 43);
	assert_int_equal(services[0]->n_methods + services[1]->n_methods, n);
}

/* ---- messages ----------------------------------------------------------------------- */

static const ProtobufCMessageDescriptor *get_message(struct fixture *fx, const char *name)
{
	const ProtobufCMessageDescriptor *m = map_find(fx->compiled.messages, name);

	if (!m)
		fail_msg("missing message %s", name);
	return m;
}

static void check_message(struct fixture *fx, char *const *row)
{
	get_message(fx, row[MESSAGE]);
}

static void has_every_message(void **state)
{
	struct fixture *fx = *state;
	size_t n = each_row(fx, "message", check_message);

	assert_int_equal(n, 175);
	assert_int_equal(map_count(fx->compiled.messages), n);
}

static const char *const scalars[] = {
	[PROTOBUF_C_TYPE_INT32] = "int32",   [PROTOBUF_C_TYPE_UINT32] = "uint32",
	[PROTOBUF_C_TYPE_INT64] = "int64",   [PROTOBUF_C_TYPE_UINT64] = "uint64",
	[PROTOBUF_C_TYPE_DOUBLE] = "double", [PROTOBUF_C_TYPE_BOOL] = "bool",
	[PROTOBUF_C_TYPE_STRING] = "string", [PROTOBUF_C_TYPE_BYTES] = "bytes",
};

/* Return: the type as spelled in the table; for an enum, only the last component of
 * its qualified name */
static char *type_name(const ProtobufCFieldDescriptor *f)
{
	const ProtobufCMessageDescriptor *m = f->descriptor;
	const ProtobufCEnumDescriptor *e = f->descriptor;

	if (f->type == PROTOBUF_C_TYPE_MESSAGE && is_map_entry(m))
		return str_printf("map<%s,%s>", str_or(scalars[m->fields[0].type], "?"),
				  str_or(scalars[m->fields[1].type], "?"));
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return str_copy(short_name(m->name));
	if (f->type == PROTOBUF_C_TYPE_ENUM)
		return str_copy(strrchr(e->name, '.') + 1);
	assert_true(f->type < ARRAY_SIZE(scalars));
	return str_copy(str_or(scalars[f->type], "?"));
}

static const char *label_name(const ProtobufCFieldDescriptor *f)
{
	if (f->label != PROTOBUF_C_LABEL_REPEATED)
		return "";
	return f->type == PROTOBUF_C_TYPE_MESSAGE && is_map_entry(f->descriptor) ? "map"
										 : "repeated";
}

static void check_field(struct fixture *fx, char *const *row)
{
	const ProtobufCMessageDescriptor *m = get_message(fx, row[MESSAGE]);
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m, row[FIELD]);
	autofree char *type = NULL;

	if (!f) {
		fail_msg("missing field %s.%s", row[MESSAGE], row[FIELD]);
		return;
	}
	type = type_name(f);
	if (f->id != number_of(row) || !str_equal(type, row[TYPE]) ||
	    !str_equal(label_name(f), row[LABEL]))
		fail_msg("%s.%s: got %s %s = %u, want %s %s = %s", row[MESSAGE], row[FIELD],
			 label_name(f), type, f->id, row[LABEL], row[TYPE], row[NUMBER]);
	assert_false(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF);
	assert_true(f->label != PROTOBUF_C_LABEL_REQUIRED);
}

static void has_every_field(void **state)
{
	struct fixture *fx = *state;
	size_t n = each_row(fx, "field", check_field), compiled = 0;
	const char *name;
	void *m;

	for (size_t i = 0; map_next(fx->compiled.messages, &i, &name, &m);)
		compiled += ((const ProtobufCMessageDescriptor *)m)->n_fields;
	assert_int_equal(n, 478);
	assert_int_equal(compiled, n);
}

/* ---- enums -------------------------------------------------------------------------- */

static void check_value(struct fixture *fx, char *const *row)
{
	const ProtobufCEnumDescriptor *e = map_find(fx->compiled.enums, row[MESSAGE]);
	const ProtobufCEnumValue *v;

	v = e ? protobuf_c_enum_descriptor_get_value_by_name(e, row[FIELD]) : NULL;
	if (!v) {
		fail_msg("missing enum value %s.%s", row[MESSAGE], row[FIELD]);
		return;
	}
	assert_int_equal(v->value, number_of(row));
}

static void has_every_enum_value(void **state)
{
	struct fixture *fx = *state;
	size_t n = each_row(fx, "enum_value", check_value), compiled = 0;
	const char *name;
	void *e;

	for (size_t i = 0; map_next(fx->compiled.enums, &i, &name, &e);)
		compiled += ((const ProtobufCEnumDescriptor *)e)->n_value_names;
	assert_int_equal(n, 95);
	assert_int_equal(compiled, n);
	assert_int_equal(map_count(fx->compiled.enums), 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "cri-v1: the descriptors contain all 43 calls, with the types of their messages",
		  has_every_call },
		{ "cri-v1: the descriptors contain all 175 messages and no others",
		  has_every_message },
		{ "cri-v1: the descriptors contain all 478 fields, with number, type and label",
		  has_every_field },
		{ "cri-v1: the descriptors contain all 95 enum values", has_every_enum_value },
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
