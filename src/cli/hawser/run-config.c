/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/run-config.c - from the options of hawser run to the configuration of a pod and its container
 */
#include "cli/hawser/run-config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/cri-v1.pb-c.h"
#include "base/str.h"

#define NAME_MAX_LEN 63 /* of a DNS label */
#define BASE_MAX     50 /* characters of the image's name in a generated name */

/* What a kubelet sends for a container that is not privileged. */
static char *const masked_paths[] = {
	(char *)"/proc/asound",	     (char *)"/proc/acpi",
	(char *)"/proc/interrupts",  (char *)"/proc/kcore",
	(char *)"/proc/keys",	     (char *)"/proc/latency_stats",
	(char *)"/proc/timer_list",  (char *)"/proc/timer_stats",
	(char *)"/proc/sched_debug", (char *)"/proc/scsi",
	(char *)"/sys/firmware",     (char *)"/sys/devices/virtual/powercap",
};
static char *const readonly_paths[] = {
	(char *)"/proc/bus",	       (char *)"/proc/fs", (char *)"/proc/irq", (char *)"/proc/sys",
	(char *)"/proc/sysrq-trigger",
};

/* The messages, which point to each other. */
struct run_parts {
	Runtime__V1__PodSandboxConfig pod;
	Runtime__V1__PodSandboxMetadata pod_metadata;
	Runtime__V1__NamespaceOption namespaces;
	Runtime__V1__LinuxSandboxSecurityContext pod_security;
	Runtime__V1__LinuxPodSandboxConfig pod_linux;
	Runtime__V1__ContainerConfig container;
	Runtime__V1__ContainerMetadata metadata;
	Runtime__V1__ImageSpec image;
	Runtime__V1__SecurityProfile seccomp;
	Runtime__V1__LinuxContainerSecurityContext security;
	Runtime__V1__LinuxContainerConfig linux;
	Runtime__V1__KeyValue *env;
	Runtime__V1__Mount *mounts;
	Runtime__V1__PortMapping *ports;
	struct hw_strings texts; /* parts of the options */
};

/* ---- names ----------------------------------------------------------------------- */

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!is_name_char(name[i]))
			return false;
	return len && len <= NAME_MAX_LEN && name[0] != '-' && name[len - 1] != '-';
}

/* "example.com/Tools/app_1:latest" becomes "app-1-" and a random number */
static char *make_name(const char *image)
{
	const char *slash = strrchr(image, '/');
	const char *base = slash ? slash + 1 : image;
	size_t len = strcspn(base, ":@");
	autofree char *name = str_ncopy(base, len < BASE_MAX ? len : BASE_MAX);
	unsigned random = 0;

	for (char *p = name; *p; p++)
		if (!is_name_char(*p))
			*p = '-';
	(void)!getrandom(&random, sizeof(random), 0); /* the runtime refuses a name that exists */
	return str_printf("%s-%06x", isalnum((unsigned char)name[0]) ? name : "run",
			  random & 0xffffff);
}

/* ---- options --------------------------------------------------------------------- */

static char *keep(struct run_config *c, const char *text, size_t len)
{
	autofree char *copy = str_ncopy(text, len);

	strings_add(&c->parts->texts, copy);
	return c->parts->texts.v[c->parts->texts.n - 1];
}

/* "KEY=VALUE", or "KEY" for a variable of hawser's environment. Return: 1; 0: there is no such variable */
static int parse_env(struct run_config *c, const char *text, Runtime__V1__KeyValue *ret,
		     struct hw_err *e)
{
	const char *equals = strchr(text, '=');
	const char *value = equals ? equals + 1 : getenv(text);

	if (!*text || equals == text)
		return err_text(e, -EINVAL, "invalid value \"%s\" for --env: want KEY=VALUE or KEY",
				text);
	if (!value)
		return 0;
	runtime__v1__key_value__init(ret);
	ret->key = keep(c, text, strcspn(text, "="));
	ret->value.data = (uint8_t *)value;
	ret->value.len = strlen(value);
	return 1;
}

/* "/HOST:/CONTAINER", with ":ro" or ":rw" behind it */
static int parse_volume(struct run_config *c, const char *text, Runtime__V1__Mount *ret,
			struct hw_err *e)
{
	const char *colon = strchr(text, ':');
	const char *path = colon ? colon + 1 : "", *mode = strchr(path, ':');

	if (text[0] != '/' || path[0] != '/' ||
	    (mode && !str_equal(mode, ":ro") && !str_equal(mode, ":rw")))
		return err_text(e, -EINVAL,
				"invalid value \"%s\" for --volume: want two absolute paths, "
				"/HOST:/CONTAINER, and :ro behind them if it is read-only",
				text);
	runtime__v1__mount__init(ret);
	ret->host_path = keep(c, text, (size_t)(colon - text));
	ret->container_path = keep(c, path, strcspn(path, ":"));
	ret->readonly = str_equal(mode, ":ro");
	return 0;
}

static bool parse_port(struct run_config *c, const char *text, size_t len, int32_t *ret)
{
	long long port;

	if (!str_to_int64(keep(c, text, len), 1, 65535, &port))
		return false;
	*ret = (int32_t)port;
	return true;
}

/* "HOST:CONTAINER", with "/tcp", "/udp" or "/sctp" behind it */
static int parse_mapping(struct run_config *c, const char *text, Runtime__V1__PortMapping *ret,
			 struct hw_err *e)
{
	static const char *const protocols[] = { "/tcp", "/udp", "/sctp" };
	size_t host = strcspn(text, ":"), len = strcspn(text, "/"), protocol = 0;

	while (text[len] && protocol < ARRAY_SIZE(protocols) &&
	       !str_equal(text + len, protocols[protocol]))
		protocol++;
	runtime__v1__port_mapping__init(ret);
	if (protocol == ARRAY_SIZE(protocols) || host >= len ||
	    !parse_port(c, text, host, &ret->host_port) ||
	    !parse_port(c, text + host + 1, len - host - 1, &ret->container_port))
		return err_text(e, -EINVAL,
				"invalid value \"%s\" for --publish: want two ports, "
				"HOST:CONTAINER, and /udp or /sctp behind them if it is not TCP",
				text);
	ret->protocol = (Runtime__V1__Protocol)protocol;
	return 0;
}

static int add_env(struct run_config *c, const struct hw_strings *list, struct hw_err *e)
{
	Runtime__V1__ContainerConfig *container = c->container;

	c->parts->env = mem_new(list->n * sizeof(*c->parts->env));
	container->envs = mem_new(list->n * sizeof(Runtime__V1__KeyValue *));
	for (size_t i = 0; i < list->n; i++) {
		int r;

		r = parse_env(c, list->v[i], &c->parts->env[i], e);
		if (r < 0)
			return r;
		if (r > 0)
			container->envs[container->n_envs++] = &c->parts->env[i];
	}
	return 0;
}

static int add_volumes(struct run_config *c, const struct hw_strings *list, struct hw_err *e)
{
	Runtime__V1__ContainerConfig *container = c->container;
	int r = 0;

	c->parts->mounts = mem_new(list->n * sizeof(*c->parts->mounts));
	container->mounts = mem_new(list->n * sizeof(Runtime__V1__Mount *));
	for (size_t i = 0; i < list->n && r == 0; i++) {
		r = parse_volume(c, list->v[i], &c->parts->mounts[i], e);
		container->mounts[container->n_mounts++] = &c->parts->mounts[i];
	}
	return r;
}

static int add_ports(struct run_config *c, const struct hw_strings *list, struct hw_err *e)
{
	int r = 0;

	c->parts->ports = mem_new(list->n * sizeof(*c->parts->ports));
	c->pod->port_mappings = mem_new(list->n * sizeof(Runtime__V1__PortMapping *));
	for (size_t i = 0; i < list->n && r == 0; i++) {
		r = parse_mapping(c, list->v[i], &c->parts->ports[i], e);
		c->pod->port_mappings[c->pod->n_port_mappings++] = &c->parts->ports[i];
	}
	return r;
}

/* ---- messages -------------------------------------------------------------------- */

static void init_pod(struct run_config *c, const struct run_options *o)
{
	runtime__v1__pod_sandbox_metadata__init(&c->parts->pod_metadata);
	c->parts->pod_metadata.name = c->name;
	c->parts->pod_metadata.namespace_ = (char *)RUN_NAMESPACE;
	c->parts->pod_metadata.uid = c->name; /* two pods with one name are refused */
	runtime__v1__namespace_option__init(&c->parts->namespaces);
	c->parts->namespaces.pid = RUNTIME__V1__NAMESPACE_MODE__CONTAINER;
	if (o->host_network)
		c->parts->namespaces.network = RUNTIME__V1__NAMESPACE_MODE__NODE;
	runtime__v1__linux_sandbox_security_context__init(&c->parts->pod_security);
	c->parts->pod_security.namespace_options = &c->parts->namespaces;
	runtime__v1__linux_pod_sandbox_config__init(&c->parts->pod_linux);
	c->parts->pod_linux.security_context = &c->parts->pod_security;
	runtime__v1__pod_sandbox_config__init(c->pod);
	c->pod->metadata = &c->parts->pod_metadata;
	c->pod->hostname = o->host_network ? (char *)"" : c->name;
	c->pod->log_directory = c->log_directory;
	c->pod->linux = &c->parts->pod_linux;
}

static void init_container(struct run_config *c, const char *image, char **args)
{
	runtime__v1__container_metadata__init(&c->parts->metadata);
	c->parts->metadata.name = c->name;
	runtime__v1__image_spec__init(&c->parts->image);
	c->parts->image.image = c->parts->image.user_specified_image = (char *)image;
	runtime__v1__security_profile__init(&c->parts->seccomp); /* RuntimeDefault */
	runtime__v1__linux_container_security_context__init(&c->parts->security);
	c->parts->security.namespace_options = &c->parts->namespaces;
	c->parts->security.masked_paths = (char **)masked_paths;
	c->parts->security.n_masked_paths = ARRAY_SIZE(masked_paths);
	c->parts->security.readonly_paths = (char **)readonly_paths;
	c->parts->security.n_readonly_paths = ARRAY_SIZE(readonly_paths);
	c->parts->security.seccomp = &c->parts->seccomp;
	runtime__v1__linux_container_config__init(&c->parts->linux);
	c->parts->linux.security_context = &c->parts->security;
	runtime__v1__container_config__init(c->container);
	c->container->metadata = &c->parts->metadata;
	c->container->image = &c->parts->image;
	c->container->args = args;
	while (args[c->container->n_args])
		c->container->n_args++;
	c->container->log_path = strrchr(c->log_path, '/') + 1;
	c->container->linux = &c->parts->linux;
}

int run_config_init(struct run_config *ret, const struct run_options *options, const char *image,
		    char **args, struct hw_err *e)
{
	int r;

	if (options->name && !is_name(options->name))
		return err_text(
			e, -EINVAL,
			"invalid value \"%s\" for --name: want at most %d lowercase letters, "
			"digits and \"-\", with no \"-\" at the start or end",
			options->name, NAME_MAX_LEN);
	ret->parts = mem_new(sizeof(*ret->parts));
	ret->pod = &ret->parts->pod;
	ret->container = &ret->parts->container;
	ret->name = options->name ? str_copy(options->name) : make_name(image);
	ret->log_directory = str_printf("%s/%s", RUN_LOGS, ret->name);
	ret->log_path = str_printf("%s/%s.log", ret->log_directory, ret->name);
	init_pod(ret, options);
	init_container(ret, image, args);
	if (options->ports.n && options->host_network)
		return err_text(
			e, -EINVAL,
			"--publish conflicts with --host-network: the container already has the "
			"ports of the host");
	r = add_env(ret, &options->env, e);
	if (r == 0)
		r = add_volumes(ret, &options->volumes, e);
	return r == 0 ? add_ports(ret, &options->ports, e) : r;
}

void run_config_set_image(struct run_config *c, char *image_id)
{
	c->parts->image.image = image_id;
}

void run_config_done(struct run_config *c)
{
	free(c->name);
	free(c->log_directory);
	free(c->log_path);
	if (!c->parts)
		return;
	free(c->container->envs);
	free(c->container->mounts);
	free(c->pod->port_mappings);
	free(c->parts->env);
	free(c->parts->mounts);
	free(c->parts->ports);
	hw_strings_free(&c->parts->texts);
	free(c->parts);
}
