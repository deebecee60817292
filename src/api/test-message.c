/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/test-message.c - decoding of valid and malformed messages
 */
#include "api/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "api/cri-v1.pb-c.h"
#include "rpc/grpc/status.h"

static void round_trip(void **state)
{
	AUTO(message_free) ProtobufCMessage *message = NULL;
	Runtime__V1__PodSandboxConfig__LabelsEntry label =
		RUNTIME__V1__POD_SANDBOX_CONFIG__LABELS_ENTRY__INIT;
	Runtime__V1__PodSandboxConfig__LabelsEntry *labels[] = { &label };
	Runtime__V1__PodSandboxMetadata metadata = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
	Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT, *back;
	AUTO(buf_done) struct buf bytes = { 0 };
	struct hw_err e;

	(void)state;
	label.key = (char *)"größe";
	label.value = (char *)"";
	metadata.name = (char *)"web-0";
	metadata.attempt = 4000000000;
	config.metadata = &metadata;
	config.n_labels = 1;
	config.labels = labels;
	message_encode(&config.base, &bytes);
	assert_int_equal(
		message_decode(config.base.descriptor, &bytes, MESSAGE_REQUEST_MAX, &message, &e),
		0);
	back = (Runtime__V1__PodSandboxConfig *)message;
	assert_string_equal(back->metadata->name, "web-0");
	assert_true(back->metadata->attempt == 4000000000);
	assert_int_equal(back->n_labels, 1);
	assert_string_equal(back->labels[0]->key, "größe");
	assert_string_equal(back->hostname, "");
	assert_null(back->linux);
}

/* Decodes a string literal as PodSandboxFilter. Field numbers: id 1, state 2, label_selector 3. */
static int decode(const char *data, size_t len, struct hw_err *e)
{
	AUTO(message_free) ProtobufCMessage *message = NULL;
	AUTO(buf_done) struct buf bytes = { 0 };

	buf_add(&bytes, data, len);
	return message_decode(&runtime__v1__pod_sandbox_filter__descriptor, &bytes,
			      MESSAGE_REQUEST_MAX, &message, e);
}

#define DECODE(text, e) decode(text, sizeof(text) - 1, e)

static void empty_message(void **state)
{
	AUTO(message_free) ProtobufCMessage *message = NULL;
	const struct buf no_bytes = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(message_decode(&runtime__v1__version_request__descriptor, &no_bytes,
					MESSAGE_REQUEST_MAX, &message, &e),
			 0);
	assert_int_equal(DECODE("", &e), 0);
}

static void unknown_fields(void **state)
{
	struct hw_err e;

	(void)state;
	assert_int_equal(DECODE("\x0a\2ab\xa0\6\1\xaa\6\1\xff\xad\6\1\2\3\4", &e), 0);
}

static void invalid_strings(void **state)
{
	struct hw_err e;

	(void)state;
	assert_int_equal(DECODE("\x0a\2\xc3\xb6", &e), 0);
	assert_true(DECODE("\x0a\2\xc3\x28", &e) < 0);
	assert_int_equal(status_from_err(&e), STATUS_INVALID_ARGUMENT);
	assert_string_equal(
		e.msg, "runtime.v1.PodSandboxFilter.id: string is not UTF-8 or contains a NUL");
	assert_true(DECODE("\x0a\3a\0b", &e) < 0);
	/* a UTF-8 character whose last byte is in the next field */
	assert_true(DECODE("\x0a\1\xc3\x82\1\0", &e) < 0);
	/* an invalid string in the key of a map */
	assert_true(DECODE("\x1a\3\x0a\1\xff", &e) < 0);
	assert_string_equal(e.msg,
			    "runtime.v1.PodSandboxFilter.LabelSelectorEntry.key: string is not "
			    "UTF-8 or contains a NUL");
}

static void malformed_messages(void **state)
{
	struct hw_err e;

	(void)state;
	assert_true(DECODE("\x0a\5ab", &e) < 0); /* truncated */
	assert_int_equal(status_from_err(&e), STATUS_INVALID_ARGUMENT);
	assert_true(DECODE("\x0a", &e) < 0);
	assert_true(DECODE("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", &e) < 0);
	assert_true(DECODE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", &e) < 0);
	assert_true(DECODE("\0\0", &e) < 0);   /* field number 0 */
	assert_true(DECODE("\x0b\0", &e) < 0); /* a group */
	assert_true(DECODE("\x12\2\x08", &e) < 0);
}

static void too_many_fields(void **state)
{
	AUTO(buf_done) struct buf bytes = { 0 };
	AUTO(message_free) ProtobufCMessage *message = NULL;
	struct hw_err e;

	(void)state;
	for (int i = 0; i <= MESSAGE_REQUEST_MAX; i++)
		buf_add(&bytes, "\x1a\0", 2);
	assert_true(message_decode(&runtime__v1__pod_sandbox_filter__descriptor, &bytes,
				   MESSAGE_REQUEST_MAX, &message, &e) < 0);
	assert_string_equal(e.msg, "runtime.v1.PodSandboxFilter.label_selector: too many fields");
	buf_done(&bytes);
	bytes = (struct buf){ 0 };
	buf_add(&bytes, "\x0a\4\x1a\2\x0a\0", 6); /* a filter with an entry with a key */
	assert_true(message_decode(&runtime__v1__list_pod_sandbox_request__descriptor, &bytes, 2,
				   &message, &e) < 0);
	assert_string_equal(e.msg,
			    "filter: label_selector: "
			    "runtime.v1.PodSandboxFilter.LabelSelectorEntry.key: too many fields");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "message: an encoded message is decoded to the same message", round_trip },
		{ "message: an empty input is decoded as a message without fields", empty_message },
		{ "message: unknown fields are skipped", unknown_fields },
		{ "message: an invalid string is rejected in any field", invalid_strings },
		{ "message: malformed protobuf is rejected", malformed_messages },
		{ "message: a message with too many fields is rejected", too_many_fields },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
