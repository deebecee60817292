/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/json.h - protobuf messages as JSON, for --json
 *
 * What:  converts any message of src/api to JSON, using its descriptor. Keys are as in
 *        protobuf's JSON mapping (repoTags), enum values are names, maps are
 *        objects, bytes are base64.
 * Rules: unlike in protobuf's JSON mapping, 64-bit numbers are numbers, and fields
 *        with default values are present, so that programs always find the key.
 *        Only absent messages are omitted.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/json/value.h"

struct value *message_to_json(const ProtobufCMessage *message);
/* In the JSON of a verbose status of CRI: parses the values of the map "info" that are JSON. The others stay
 * strings. */
void json_parse_info(struct value *status);

#endif
