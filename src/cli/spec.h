/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/spec.h - image configuration in the verbose ImageStatus of a runtime
 *
 * What:  info["info"] of ImageStatus is JSON that contains imageSpec, the OCI image
 *        configuration. This is the same in hawser-cri, containerd and CRI-O.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include <stdbool.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"

struct Runtime__V1__ImageStatusResponse; /* api/cri-v1.pb-c.h */

struct spec_step {
	char *created, *created_by, *comment;
	bool empty_layer;
};

struct spec {
	char *created, *architecture, *os, *variant;
	struct spec_config {
		char *user, *working_dir, *stop_signal;
		struct hw_strings env, entrypoint, cmd;
		struct hw_map labels;
		char *ports, *volumes; /* JSON objects; only their keys are used */
	} config;
	struct spec_rootfs {
		struct hw_strings diff_ids;
	} rootfs;
	struct hw_list history; /* array of struct spec_step, the oldest step first */
};

/* Return: 1 if read; 0 if the runtime does not report the configuration; -EINVAL: it is malformed */
int spec_read(const struct Runtime__V1__ImageStatusResponse *status, struct spec *ret,
	      struct hw_err *e);
void spec_done(struct spec *spec);
char *spec_age(const char *created); /* "12d"; "" if @created is malformed */

AUTO_VALUE_DEFINE(spec_done, struct spec);

#endif
