/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/json.h - messages as JSON, for --json
 *
 * What:  any message of src/api, by its descriptor: keys as protobuf's JSON has
 *        them (repoTags), enum values by name, maps as objects, bytes as base64.
 * Rules: numbers are numbers, also those of 64 bits, unlike protobuf's JSON. What
 *        has its default is there all the same, so that a program finds the key;
 *        only a message that is absent is not.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/json/value.h"

struct value *json_of(const ProtobufCMessage *message);

#endif
