/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-json.c - protobuf messages as JSON
 */
#include "cli/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"

static void assert_json(const ProtobufCMessage *message, const char *expected)
{
	AUTO(value_free) struct value *v = message_to_json(message);
	autofree char *text = value_format(v, 0);

	assert_string_equal(text, expected);
}

static void test_defaults(void **state)
{
	Runtime__V1__Image image = RUNTIME__V1__IMAGE__INIT;

	(void)state;
	assert_json(&image.base, "{\"id\":\"\",\"repoTags\":[],\"repoDigests\":[],\"size\":0,"
				 "\"username\":\"\",\"pinned\":false}");
}

static void test_nesting(void **state)
{
	Runtime__V1__Int64Value uid = RUNTIME__V1__INT64_VALUE__INIT;
	Runtime__V1__Image image = RUNTIME__V1__IMAGE__INIT, *images[] = { &image };
	Runtime__V1__ListImagesResponse list = RUNTIME__V1__LIST_IMAGES_RESPONSE__INIT;
	char tag[] = "a:1", *tags[] = { tag, tag };

	(void)state;
	uid.value = -7;
	image.uid = &uid;
	image.size = 5000000000;
	image.repo_tags = tags;
	image.n_repo_tags = 2;
	image.pinned = true;
	list.images = images;
	list.n_images = 1;
	assert_json(&list.base,
		    "{\"images\":[{\"id\":\"\",\"repoTags\":[\"a:1\",\"a:1\"],\"repoDigests\":[],"
		    "\"size\":5000000000,\"uid\":{\"value\":-7},\"username\":\"\","
		    "\"pinned\":true}]}");
}

static void test_maps(void **state)
{
	Runtime__V1__ImageStatusResponse__InfoEntry entry =
		RUNTIME__V1__IMAGE_STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__ImageStatusResponse__InfoEntry *entries[] = { &entry };
	Runtime__V1__ImageStatusResponse status = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INIT;
	char key[] = "k_k", text[] = "v";

	(void)state;
	entry.key = key;
	entry.value = text;
	status.info = entries;
	status.n_info = 1;
	assert_json(&status.base, "{\"info\":{\"k_k\":\"v\"}}");
}

static void test_enums(void **state)
{
	Hawser__V1__VerifyResponse layer = HAWSER__V1__VERIFY_RESPONSE__INIT;

	(void)state;
	layer.state = HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED;
	layer.bytes = UINT64_MAX; /* does not fit into a signed 64-bit number: becomes a string */
	assert_json(&layer.base, "{\"imageId\":\"\",\"diffId\":\"\",\"state\":\"DAMAGED\","
				 "\"files\":0,\"bytes\":\"18446744073709551615\",\"damaged\":[]}");
	layer.state = (Hawser__V1__VerifyResponse__State)42;
	layer.bytes = 1;
	assert_json(&layer.base, "{\"imageId\":\"\",\"diffId\":\"\",\"state\":42,"
				 "\"files\":0,\"bytes\":1,\"damaged\":[]}");
}

static void test_bytes(void **state)
{
	Hawser__V1__SaveResponse piece = HAWSER__V1__SAVE_RESPONSE__INIT;
	uint8_t data[] = { 0, 0xff, 'x' };

	(void)state;
	piece.data = (ProtobufCBinaryData){ sizeof(data), data };
	assert_json(&piece.base, "{\"data\":\"AP94\"}");
}

static void test_info(void **state)
{
	Runtime__V1__ImageStatusResponse__InfoEntry json =
		RUNTIME__V1__IMAGE_STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__ImageStatusResponse__InfoEntry text = json, *all[] = { &json, &text };
	Runtime__V1__ImageStatusResponse status = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INIT;
	AUTO(value_free) struct value *v = NULL;
	autofree char *formatted = NULL;

	(void)state;
	json.key = (char *)"a";
	json.value = (char *)"{\"b\":[1]}";
	text.key = (char *)"t";
	text.value = (char *)"not {";
	status.info = all;
	status.n_info = 2;
	v = message_to_json(&status.base);
	json_parse_info(v);
	formatted = value_format(v, 0);
	assert_string_equal(formatted, "{\"info\":{\"a\":{\"b\":[1]},\"t\":\"not {\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "json: all fields are present in the output, except absent messages",
		  test_defaults },
		{ "json: nested messages and lists are converted, and 64-bit values are numbers",
		  test_nesting },
		{ "json: a map becomes an object", test_maps },
		{ "json: an enum value becomes its name, an unknown one stays a number",
		  test_enums },
		{ "json: bytes are encoded in base64", test_bytes },
		{ "json: values of the info map that are JSON are parsed, others stay strings",
		  test_info },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
