/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/test-cri-v1.c - the compiled CRI is the one of the table, number by number
 *
 * How:   proto/cri-v1.tsv was taken from upstream's own file; the descriptors
 *        were compiled from ours. Every message and enum is found by walking
 *        from the two services, so both directions are looked at: each row has
 *        its descriptor, and there are as many descriptors as rows.
 *        Whether a call streams is not in a descriptor: for that the text of
 *        the .proto is asked.
 */
#include "api/cri-v1.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"

#define PACKAGE	 "runtime.v1."
#define FILE_MAX (1 << 20)

/* ---- what was compiled -------------------------------------------------------------- */

static const ProtobufCServiceDescriptor *const services[] = {
	&runtime__v1__runtime_service__descriptor,
	&runtime__v1__image_service__descriptor,
};

struct compiled {
	struct map *messages; /* by name without the package; values are the descriptors */
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

/* From here to everything that it holds; the nesting is a dozen deep at most. */
static void walk(struct compiled *c, const ProtobufCMessageDescriptor *m)
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
			walk(c, f->descriptor);
		else if (f->type == PROTOBUF_C_TYPE_ENUM)
			map_set(c->enums, short_name(e->name), (void *)e);
	}
}

/* ---- what the table says ------------------------------------------------------------ */

enum { KIND, MESSAGE, FIELD, NUMBER, TYPE, LABEL, COLUMNS };

struct world {
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

static int world_make(void **state)
{
	struct world *w = mem_new(sizeof(*w));
	autofree char *table = read_source("proto/cri-v1.tsv");

	strings_split(table, '\n', &w->lines);
	w->proto = read_source("proto/cri-v1.proto");
	w->compiled.messages = map_new(NULL);
	w->compiled.enums = map_new(NULL);
	for (size_t s = 0; s < ARRAY_SIZE(services); s++) {
		for (unsigned i = 0; i < services[s]->n_methods; i++) {
			walk(&w->compiled, services[s]->methods[i].input);
			walk(&w->compiled, services[s]->methods[i].output);
		}
	}
	*state = w;
	return 0;
}

static int world_end(void **state)
{
	struct world *w = *state;

	hw_strings_free(&w->lines);
	map_free(w->compiled.messages);
	map_free(w->compiled.enums);
	free(w->proto);
	free(w);
	return 0;
}

/* Calls back for each row of a kind, and returns how many there were. */
static size_t each_row(struct world *w, const char *kind,
		       void (*check)(struct world *w, char *const *row))
{
	size_t n = 0;

	for (size_t i = 0; i < w->lines.n; i++) {
		AUTO(hw_strings_free) struct hw_strings row = { 0 };

		strings_split(w->lines.v[i], '\t', &row);
		if (row.n < COLUMNS || !str_equal(row.v[KIND], kind))
			continue;
		check(w, row.v);
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

static void check_rpc(struct world *w, char *const *row)
{
	const ProtobufCMethodDescriptor *m = find_method(row[MESSAGE], row[FIELD]);
	autofree char *text = str_printf("rpc %s(", row[FIELD]);
	autofree char *types = NULL;
	const char *in_proto = strstr(w->proto, text), *stream, *end;

	if (!m || !in_proto) {
		fail_msg("no call %s.%s", row[MESSAGE], row[FIELD]);
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

static const ProtobufCMessageDescriptor *get_message(struct world *w, const char *name)
{
	const ProtobufCMessageDescriptor *m = map_find(w->compiled.messages, name);

	if (!m)
		fail_msg("no message %s", name);
	return m;
}

static void check_message(struct world *w, char *const *row)
{
	get_message(w, row[MESSAGE]);
}

static void has_every_message(void **state)
{
	struct world *w = *state;
	size_t n = each_row(w, "message", check_message);

	assert_int_equal(n, 175);
	assert_int_equal(map_count(w->compiled.messages), n);
}

static const char *const scalars[] = {
	[PROTOBUF_C_TYPE_INT32] = "int32",   [PROTOBUF_C_TYPE_UINT32] = "uint32",
	[PROTOBUF_C_TYPE_INT64] = "int64",   [PROTOBUF_C_TYPE_UINT64] = "uint64",
	[PROTOBUF_C_TYPE_DOUBLE] = "double", [PROTOBUF_C_TYPE_BOOL] = "bool",
	[PROTOBUF_C_TYPE_STRING] = "string", [PROTOBUF_C_TYPE_BYTES] = "bytes",
};

/* The type as the table writes it: an enum inside a message by its last name. */
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

static void check_field(struct world *w, char *const *row)
{
	const ProtobufCMessageDescriptor *m = get_message(w, row[MESSAGE]);
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m, row[FIELD]);
	autofree char *type = NULL;

	if (!f) {
		fail_msg("no field %s.%s", row[MESSAGE], row[FIELD]);
		return;
	}
	type = type_name(f);
	if (f->id != number_of(row) || !str_equal(type, row[TYPE]) ||
	    !str_equal(label_name(f), row[LABEL]))
		fail_msg("%s.%s is %s %s = %u, the table has %s %s = %s", row[MESSAGE], row[FIELD],
			 label_name(f), type, f->id, row[LABEL], row[TYPE], row[NUMBER]);
	assert_false(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF);
	assert_true(f->label != PROTOBUF_C_LABEL_REQUIRED);
}

static void has_every_field(void **state)
{
	struct world *w = *state;
	size_t n = each_row(w, "field", check_field), compiled = 0;
	const char *name;
	void *m;

	for (size_t i = 0; map_next(w->compiled.messages, &i, &name, &m);)
		compiled += ((const ProtobufCMessageDescriptor *)m)->n_fields;
	assert_int_equal(n, 478);
	assert_int_equal(compiled, n);
}

/* ---- enums -------------------------------------------------------------------------- */

static void check_value(struct world *w, char *const *row)
{
	const ProtobufCEnumDescriptor *e = map_find(w->compiled.enums, row[MESSAGE]);
	const ProtobufCEnumValue *v;

	v = e ? protobuf_c_enum_descriptor_get_value_by_name(e, row[FIELD]) : NULL;
	if (!v) {
		fail_msg("no value %s.%s", row[MESSAGE], row[FIELD]);
		return;
	}
	assert_int_equal(v->value, number_of(row));
}

static void has_every_enum_value(void **state)
{
	struct world *w = *state;
	size_t n = each_row(w, "enum_value", check_value), compiled = 0;
	const char *name;
	void *e;

	for (size_t i = 0; map_next(w->compiled.enums, &i, &name, &e);)
		compiled += ((const ProtobufCEnumDescriptor *)e)->n_value_names;
	assert_int_equal(n, 95);
	assert_int_equal(compiled, n);
	assert_int_equal(map_count(w->compiled.enums), 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "cri-v1: has each of the 43 calls, with its messages", has_every_call },
		{ "cri-v1: has each of the 175 messages and no other", has_every_message },
		{ "cri-v1: has each of the 478 fields, with number, type and label",
		  has_every_field },
		{ "cri-v1: has each of the 95 values of enums", has_every_enum_value },
	};

	return cmocka_run_group_tests(tests, world_make, world_end);
}
