/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/run-config.h - from the options of hawser run to the configuration of a pod and its container
 *
 * What:  a pod in the namespace default with one container, which has the same name. Its
 *        log is in RUN_LOGS/NAME. The container has the limits of an ordinary pod of
 *        Kubernetes: the same masked and read-only paths, and the runtime's seccomp profile.
 * Rules: the name of a pod is a DNS label, as in Kubernetes: it is also its host name, and a
 *        part of the path of its log.
 */
#ifndef CLI_HAWSER_RUN_CONFIG_H
#define CLI_HAWSER_RUN_CONFIG_H

#include <stdbool.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

/* api/cri-v1.pb-c.h */
struct Runtime__V1__ContainerConfig;
struct Runtime__V1__PodSandboxConfig;

#define RUN_NAMESPACE "default"
#define RUN_LOGS      "/var/log/hawser/run"

struct run_options {
	const char *name; /* NULL: made from the name of the image and a random number */
	struct hw_strings env, volumes, ports;
	bool host_network;
};

struct run_config {
	struct Runtime__V1__PodSandboxConfig *pod;
	struct Runtime__V1__ContainerConfig *container;
	char *name, *log_directory, *log_path; /* log_path is absolute */
	struct run_parts *parts;
};

/* @image, @args: NULL at the end; both, and @options, must live as long as *ret.
 * Return: 0; -EINVAL: the error names the option */
int run_config_init(struct run_config *ret, const struct run_options *options, const char *image,
		    char **args, struct hw_err *e);
/* Set the image as the runtime knows it. */
void run_config_set_image(struct run_config *c, char *image_id);
void run_config_done(struct run_config *c);

AUTO_VALUE_DEFINE(run_config_done, struct run_config);

#endif
