/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/config.c - the configuration of hawser-cri: a YAML file, and flags with the same names
 *
 * How:   the file is parsed into a tree, the flags override its keys, the table decodes
 *        it. checks[] contains a function for each key whose value the table alone cannot
 *        check. The same functions parse a value when it is used.
 *        Each error starts with the key, which is then used to find the line.
 */
#include "cri/config/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/ip.h"
#include "base/json/field.h"
#include "base/json/yaml.h"
#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cri/config/fetch-uid.h"
#include "image/reference.h"
#include "oci/handler.h"
#include "oci/spec/capabilities.h"

#define AT(member) HW_AT(struct config, member)

const struct hw_field config_fields[] = {
	{ "listen", HW_STRING, AT(listen), .def = "\"unix:/run/hawser/cri.sock\"",
	  .help = "socket for CRI; not used if systemd passes sockets" },
	{ "socket-owner", HW_STRING, AT(socket_owner), .def = "\"\"",
	  .help = "USER or USER:GROUP that may connect; empty: the user that starts the daemon" },
	{ "root", HW_STRING, AT(root), .def = "\"/var/lib/hawser\"",
	  .help = "directory for data that survives a reboot" },
	{ "state", HW_STRING, AT(state), .def = "\"/run/hawser\"",
	  .help = "directory for data that does not survive a reboot" },
	{ "netns-dir", HW_STRING, AT(netns_dir), .def = "\"/run/netns\"",
	  .help = "directory of the pods' network namespaces" },
	{ "cni-conf-dir", HW_STRING, AT(cni_conf_dir), .def = "\"/etc/cni/net.d\"",
	  .help = "directory of network configurations (CNI)" },
	{ "cni-bin-dir", HW_STRING, AT(cni_bin_dir), .def = "\"/opt/cni/bin\"",
	  .help = "directories of CNI plugins, separated by colons" },
	{ "cni-cache-dir", HW_STRING, AT(cni_cache_dir), .def = "\"/var/lib/cni\"",
	  .help = "directory where results of CNI plugins are stored" },
	{ "cni-conf-template", HW_STRING, AT(cni_conf_template), .def = "\"\"",
	  .help = "template for 10-hawser.conflist, used when kubelet sends the pod CIDR" },
	{ "network-timeout", HW_INT, AT(network_timeout), .def = "220", .min = 1, .max = 3600,
	  .help = "seconds that the plugins have to attach a pod; kubelet waits 240" },
	{ "default-network", HW_BOOL, AT(default_network), .def = "false",
	  .help = "use a built-in bridge network while cni-conf-dir has no valid configuration" },
	{ "gc-networks", HW_STRINGS, AT(gc_networks), .def = "[]",
	  .help = "networks whose attachments of pods that no longer exist are deleted when the "
		  "daemon starts, and by \"hawser network gc\"" },
	{ "runtime-handler", HW_STRINGS, AT(runtime_handler), .def = "[]",
	  .help = "NAME=PROGRAM: an OCI runtime for pods with this runtime handler; the default is "
		  "crun" },
	{ "default-sysctls", HW_STRINGS, AT(default_sysctls),
	  .def = "[\"net.ipv4.ip_unprivileged_port_start=0\","
		 "\"net.ipv4.ping_group_range=0 2147483647\"]",
	  .help = "NAME=VALUE: sysctls of pods that have a network namespace" },
	{ "default-capabilities", HW_STRINGS, AT(default_capabilities),
	  .def = "[\"CHOWN\",\"DAC_OVERRIDE\",\"FSETID\",\"FOWNER\",\"MKNOD\",\"NET_RAW\","
		 "\"SETGID\",\"SETUID\",\"SETFCAP\",\"SETPCAP\",\"NET_BIND_SERVICE\","
		 "\"SYS_CHROOT\",\"KILL\",\"AUDIT_WRITE\"]",
	  .help = "capabilities of containers whose request does not change them; by default those "
		  "of containerd" },
	{ "registry-mirror", HW_STRINGS, AT(registry_mirror), .def = "[]",
	  .help = "HOST=URL: pull images of HOST from URL first; mirrors are tried in order" },
	{ "plain-http", HW_STRINGS, AT(plain_http), .def = "[]",
	  .help = "HOST or HOST:PORT of a registry that is used without TLS" },
	{ "auth-file", HW_STRING, AT(auth_file), .def = "\"/etc/hawser/auth.json\"",
	  .help = "credentials for registries, in the format of Docker's config.json" },
	{ "certs-dir", HW_STRING, AT(certs_dir), .def = "\"/etc/containers/certs.d\"",
	  .help = "certificates for registries, one directory per host" },
	{ "fetch-uid", HW_UINT32, AT(fetch_uid), .def = "0", .max = UINT32_MAX - 1,
	  .help = "user ID of the process that talks to registries; 0: a free one from 61184 to "
		  "65519" },
	{ "decompression-limit", HW_INT64, AT(decompression_limit), .def = "68719476736",
	  .min = 1 << 20, .max = -1, .help = "maximum size of an unpacked layer, in bytes" },
	{ "disk-reserve", HW_INT64, AT(disk_reserve), .def = "67108864", .min = 0, .max = -1,
	  .help = "bytes that a pull leaves free on the file system of the directory \"root\"" },
	{ "pull-timeout", HW_INT, AT(pull_timeout), .def = "300", .min = 1, .max = 86400,
	  .help = "seconds without progress after which a pull fails" },
	{ "keep-blobs", HW_BOOL, AT(keep_blobs), .def = "false",
	  .help = "also keep the compressed layers as downloaded; save then writes them "
		  "unchanged" },
	{ "pinned-images", HW_STRINGS, AT(pinned_images), .def = "[]",
	  .help = "images that kubelet's garbage collection keeps" },
	{ "cgroup-driver", HW_STRING, AT(cgroup_driver), .def = "\"auto\"",
	  .help = "systemd, cgroupfs or auto (systemd if it is running, otherwise cgroupfs)" },
	{ "stream-address", HW_STRING, AT(stream_address), .def = "\"127.0.0.1:0\"",
	  .help = "loopback address for exec, attach and port-forward (not implemented yet)" },
	{ "metrics-address", HW_STRING, AT(metrics_address), .def = "\"\"",
	  .help = "unix:PATH or a loopback ADDRESS:PORT for Prometheus; empty: disabled" },
	{ "long-calls", HW_INT, AT(long_calls), .def = "512", .min = 1, .max = 16384,
	  .help = "maximum number of concurrent pulls and other long calls, one thread each" },
	{ "pulls-per-registry", HW_INT, AT(pulls_per_registry), .def = "0", .min = 0, .max = 16384,
	  .help = "maximum number of concurrent pulls from one registry; 0: a quarter of "
		  "long-calls" },
	{ "drain-timeout", HW_INT, AT(drain_timeout), .def = "10", .min = 0, .max = 3600,
	  .help = "seconds to wait for running calls when the daemon stops" },
	{ "log-level", HW_STRING, AT(log_level), .def = "\"info\"",
	  .help = "error, warn, info or debug" },
	{ "log-format", HW_STRING, AT(log_format), .def = "\"auto\"",
	  .help = "text, json, journal or auto (journal under systemd, otherwise text)" },
	{ 0 },
};

/* Keys that can change while the daemon runs. */
static const char *const reloadable[] = {
	"cni-conf-template",   "registry-mirror",    "plain-http",    "auth-file",
	"certs-dir",	       "disk-reserve",	     "pull-timeout",  "pinned-images",
	"decompression-limit", "log-level",	     "drain-timeout", "keep-blobs",
	"fetch-uid",	       "pulls-per-registry", "gc-networks",
};

static bool is_reloadable(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(reloadable); i++)
		if (str_equal(reloadable[i], name))
			return true;
	return false;
}

/* The value of a key in an encoded configuration, or its default. Return: a new reference */
static struct value *get_value(const struct value *object, const struct hw_field *f)
{
	struct value *v = value_get(object, f->name);

	return v ? value_ref(v) : value_literal(f->def);
}

/* ---- values ------------------------------------------------------------------------- */

int config_address(const char *text, struct config_address *ret_address, struct hw_err *e)
{
	const char *path, *colon = strrchr(text, ':');
	bool brackets = text[0] == '[' && colon > text && colon[-1] == ']';
	autofree char *host = NULL;
	long long port;

	if (str_starts(text, "unix:")) {
		/* "unix:/a", or "unix:///a" as kubelet writes it */
		path = text + strlen("unix:") + (str_starts(text, "unix:///") ? 2 : 0);
		if (path[0] != '/')
			return err_text(e, -EINVAL, "%s: socket path must be absolute", text);
		if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
			return err_text(e, -EINVAL, "%.200s: socket path too long", path);
		ret_address->path = path;
		return 0;
	}
	if (!colon || !str_to_int64(colon + 1, 0, 65535, &port))
		return err_text(e, -EINVAL, "%.200s: expected unix:PATH or ADDRESS:PORT", text);
	host = str_ncopy(text + brackets, (size_t)(colon - text) - 2 * brackets);
	if (hw_ip_parse(host, &ret_address->ip, e) < 0)
		return e->code;
	if (brackets != (ret_address->ip.family == AF_INET6))
		return err_text(e, -EINVAL,
				"%s: expected [ADDRESS]:PORT for IPv6, ADDRESS:PORT for IPv4",
				text);
	if (!ip_is_loopback(&ret_address->ip))
		return err_text(e, -EINVAL, "%s: not a loopback address", text);
	ret_address->path = NULL;
	ret_address->port = (int)port;
	return 0;
}

static int find_user(const char *name, struct socket_owner *owner, struct hw_err *e)
{
	struct passwd entry, *found = NULL;
	char room[4096];
	long long n;

	if (str_to_int64(name, 0, UINT32_MAX - 1, &n)) {
		owner->uid = (uid_t)n;
		return 0;
	}
	getpwnam_r(name, &entry, room, sizeof(room), &found);
	if (!found)
		return err_text(e, -EINVAL, "unknown user %.64s", name);
	owner->uid = found->pw_uid;
	return 0;
}

static int find_group(const char *name, struct socket_owner *owner, struct hw_err *e)
{
	struct group entry, *found = NULL;
	char room[16384];
	long long n;

	if (str_to_int64(name, 0, UINT32_MAX - 1, &n)) {
		owner->gid = (gid_t)n;
		return 0;
	}
	getgrnam_r(name, &entry, room, sizeof(room), &found);
	if (!found)
		return err_text(e, -EINVAL, "unknown group %.64s", name);
	owner->gid = found->gr_gid;
	return 0;
}

int config_owner(const char *text, struct socket_owner *ret_owner, struct hw_err *e)
{
	const char *colon = strchr(text, ':');
	autofree char *user = str_ncopy(text, colon ? (size_t)(colon - text) : strlen(text));
	struct socket_owner owner = { .mode = colon ? 0660 : 0600, .uid = -1, .gid = -1 };
	int r = 0;

	if (*user)
		r = find_user(user, &owner, e);
	if (r < 0)
		return r;
	if (colon)
		r = find_group(colon + 1, &owner, e);
	if (r < 0)
		return r;
	*ret_owner = owner;
	return 0;
}

enum cgroup_driver config_cgroup_driver(const struct config *c)
{
	bool systemd =
		str_equal(c->cgroup_driver, "systemd") ||
		(str_equal(c->cgroup_driver, "auto") && access("/run/systemd/system", F_OK) == 0);

	return systemd ? CGROUP_SYSTEMD : CGROUP_CGROUPFS;
}

void config_sysctls(const struct config *c, struct hw_map *ret)
{
	size_t n = c->default_sysctls.n;

	*ret = (struct hw_map){ mem_new((n + 1) * sizeof(char *)),
				mem_new((n + 1) * sizeof(char *)), n };
	for (size_t i = 0; i < n; i++) {
		const char *text = c->default_sysctls.v[i], *equals = strchr(text, '=');

		ret->keys[i] = str_ncopy(text, (size_t)(equals - text));
		ret->values[i] = str_copy(equals + 1);
	}
}

void config_sysctls_done(struct hw_map *map)
{
	for (size_t i = 0; i < map->n; i++) {
		free(map->keys[i]);
		free(map->values[i]);
	}
	free(map->keys);
	free(map->values);
	*map = (struct hw_map){ 0 };
}

unsigned config_pulls_per_registry(const struct config *c)
{
	int quarter = c->long_calls / 4;

	if (c->pulls_per_registry > 0)
		return (unsigned)c->pulls_per_registry;
	return quarter > 0 ? (unsigned)quarter : 1;
}

/* ---- checks ------------------------------------------------------------------------- */

static int check_listen(const char *text, struct hw_err *e)
{
	struct config_address address;

	if (!str_starts(text, "unix:"))
		return err_text(e, -EINVAL, "%.200s: expected unix:PATH", text);
	return config_address(text, &address, e);
}

static int check_owner(const char *text, struct hw_err *e)
{
	struct socket_owner owner;

	return config_owner(text, &owner, e);
}

static int check_dir(const char *text, struct hw_err *e)
{
	return text[0] == '/' ? 0 : err_text(e, -EINVAL, "%.200s: path must be absolute", text);
}

static int check_optional_path(const char *text, struct hw_err *e)
{
	return *text ? check_dir(text, e) : 0;
}

static int check_dirs(const char *text, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings list = { 0 };
	int r = 0;

	strings_split(text, ':', &list);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = check_dir(list.v[i], e);
	return r;
}

static int check_host(const char *text, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = str_printf("%s/x/x", text);

	if (reference_parse(name, &ref, e) < 0 || !str_equal(ref.domain, text))
		return err_text(e, -EINVAL, "%.200s: invalid registry host", text);
	return 0;
}

static int check_mirror(const char *text, struct hw_err *e)
{
	const char *equals;
	autofree char *host = NULL;

	equals = strchr(text, '=');
	if (!equals || (!str_starts(equals + 1, "https://") && !str_starts(equals + 1, "http://")))
		return err_text(e, -EINVAL, "%.200s: expected HOST=https://... or HOST=http://...",
				text);
	host = str_ncopy(text, (size_t)(equals - text));
	return check_host(host, e);
}

static int check_handler(const char *text, struct hw_err *e)
{
	autofree char *name = NULL;
	const char *program;

	return handler_parse(text, &name, &program, e);
}

static int check_sysctl(const char *text, struct hw_err *e)
{
	const char *equals;

	equals = strchr(text, '=');
	if (!equals || equals == text || !str_starts(text, "net."))
		return err_text(e, -EINVAL, "%.200s: expected net.NAME=VALUE", text);
	return 0;
}

static int check_capability(const char *text, struct hw_err *e)
{
	char *name = (char *)text;
	uint64_t set;

	return spec_parse_capabilities(&(struct hw_strings){ &name, 1 }, &set, e);
}

static int check_image(const char *text, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };

	return reference_parse(text, &ref, e);
}

static int check_address(const char *text, struct hw_err *e)
{
	struct config_address address;

	return *text ? config_address(text, &address, e) : 0;
}

static int check_word(const char *text, const char *const *words, struct hw_err *e)
{
	AUTO(buf_done) struct buf all = { 0 };

	for (size_t i = 0; words[i]; i++) {
		if (str_equal(words[i], text))
			return 0;
		buf_printf(&all, "%s%s", i ? ", " : "", words[i]);
	}
	return err_text(e, -EINVAL, "%.200s: expected one of %s", text, all.data);
}

static int check_driver(const char *text, struct hw_err *e)
{
	return check_word(text, (const char *const[]){ "auto", "systemd", "cgroupfs", NULL }, e);
}

static int check_format(const char *text, struct hw_err *e)
{
	return check_word(text, (const char *const[]){ "auto", "text", "json", "journal", NULL },
			  e);
}

static int check_level(const char *text, struct hw_err *e)
{
	enum log_level level;

	if (log_level_parse(text, &level))
		return 0;
	return err_text(e, -EINVAL, "%.200s: expected one of error, warn, info, debug", text);
}

static const struct value_check {
	const char *key;
	int (*check)(const char *text, struct hw_err *e);
} checks[] = {
	{ "listen", check_listen },
	{ "socket-owner", check_owner },
	{ "root", check_dir },
	{ "state", check_dir },
	{ "netns-dir", check_dir },
	{ "cni-conf-dir", check_dir },
	{ "cni-bin-dir", check_dirs },
	{ "cni-cache-dir", check_dir },
	{ "cni-conf-template", check_optional_path },
	{ "runtime-handler", check_handler },
	{ "default-sysctls", check_sysctl },
	{ "default-capabilities", check_capability },
	{ "registry-mirror", check_mirror },
	{ "plain-http", check_host },
	{ "auth-file", check_optional_path },
	{ "certs-dir", check_optional_path },
	{ "pinned-images", check_image },
	{ "cgroup-driver", check_driver },
	{ "stream-address", check_address },
	{ "metrics-address", check_address },
	{ "log-level", check_level },
	{ "log-format", check_format },
};

static int check_field(const struct value_check *row, const struct config *c, struct hw_err *e)
{
	const struct hw_field *f = config_fields;
	const struct hw_strings *list;
	const char *member;

	while (!str_equal(f->name, row->key))
		f++;
	member = (const char *)c + f->at;
	if (f->type != HW_STRINGS)
		return row->check(*(char *const *)member, e) < 0 ? err_ctx(e, "%s", row->key) : 0;
	list = (const struct hw_strings *)member;
	for (size_t i = 0; i < list->n; i++)
		if (row->check(list->v[i], e) < 0)
			return err_ctx(e, "%s[%zu]", row->key, i);
	return 0;
}

/* ---- loading ------------------------------------------------------------------------ */

/* Extends the message "KEY: ..." to "--KEY: ..." if a flag has set the key, otherwise to
 * "FILE: line N: KEY: ...". */
static int add_location(const struct config_source *source, const struct buf *text,
			struct hw_err *e)
{
	size_t len = strcspn(e->msg, ":[");
	autofree char *key = str_ncopy(e->msg, len);

	if (source->flags && value_get(source->flags, key))
		return err_text(e, e->code, "--%s", e->msg);
	return err_ctx(e, "%s: line %zu", source->file,
		       yml_line(str_or(text->data, ""), text->len, e->msg));
}

static void config_free(void *object)
{
	struct config *c = object;

	hw_field_clear(config_fields, c);
	free(c->file);
	free(c);
}

int config_load(const struct config_source *source, struct config **ret_config, struct hw_err *e)
{
	AUTO(shared_unref) struct config *c = mem_new(sizeof(*c));
	AUTO(value_free) struct value *object = NULL;
	AUTO(buf_done) struct buf text = { 0 };
	struct value *v;
	const char *key;
	bool missing;
	int r;

	shared_init(&c->shared, config_free);
	r = file_read(AT_FDCWD, source->file, YML_SIZE_MAX, &text, e);
	missing = r == -ENOENT && !source->must_exist;
	if (r < 0 && !missing)
		return err_ctx(e, "configuration");
	if (yml_parse(str_or(text.data, ""), text.len, &object, e) < 0)
		return err_ctx(e, "%s", source->file);
	if (value_kind(object) == VALUE_NULL) { /* an empty file */
		value_free(object);
		object = value_new_object();
	}
	if (value_kind(object) != VALUE_OBJECT)
		return err_text(e, -EINVAL, "%s: line 1: expected a mapping of keys to values",
				source->file);
	r = field_check_known(config_fields, object, e);
	if (r == 0 && source->flags)
		for (void *i = NULL; value_next(source->flags, &i, &key, &v);)
			value_set(object, key, value_ref(v));
	if (r == 0)
		r = field_decode(config_fields, object, c, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(checks); i++)
		r = check_field(&checks[i], c, e);
	if (r < 0)
		return add_location(source, &text, e);
	c->uid = c->fetch_uid;
	if (c->uid == 0 && fetch_uid_find("/", &c->uid, e) < 0)
		return err_ctx(e, "fetch-uid");
	c->file = str_copy(missing ? "" : source->file);
	*ret_config = take_ptr(c);
	return 0;
}

struct config *config_merge(const struct config *now, const struct config *next,
			    void (*ignored)(void *ctx, const char *name), void *ctx)
{
	AUTO(value_free) struct value *old = field_encode(config_fields, now);
	AUTO(value_free) struct value *new = field_encode(config_fields, next);
	struct config *merged = mem_new(sizeof(*merged));
	struct hw_err e;
	int r;

	for (const struct hw_field *f = config_fields; f->type != HW_END; f++) {
		AUTO(value_free) struct value *was = get_value(old, f);
		AUTO(value_free) struct value *is = get_value(new, f);

		if (is_reloadable(f->name) || value_equal(was, is))
			continue;
		ignored(ctx, f->name);
		value_set(new, f->name, value_ref(was));
	}
	r = field_decode(config_fields, new, merged, &e);
	assert(r == 0);
	shared_init(&merged->shared, config_free);
	merged->file = str_copy(next->file);
	merged->uid = next->uid;
	return merged;
}

/* ---- printing ----------------------------------------------------------------------- */

/* Prints values as JSON on one line, which is valid YAML. */
char *config_format(const struct config *c)
{
	AUTO(value_free) struct value *object = field_encode(config_fields, c);
	AUTO(buf_done) struct buf b = { 0 };

	for (const struct hw_field *f = config_fields; f->type != HW_END; f++) {
		AUTO(value_free) struct value *default_value = value_literal(f->def);
		AUTO(value_free) struct value *v = get_value(object, f);
		bool is_list = f->type == HW_STRINGS && value_count(v) > 0;
		autofree char *text = is_list ? NULL : value_format(v, 0);

		buf_printf(&b, "%s# %s\n", b.len ? "\n" : "", f->help);
		if (!value_equal(v, default_value))
			buf_printf(&b, "# default: %s\n", f->def);
		buf_printf(&b, "%s:%s%s\n", f->name, text ? " " : "", str_or(text, ""));
		for (size_t i = 0; is_list && i < value_count(v); i++) {
			autofree char *entry = value_format(value_at(v, i), 0);

			buf_printf(&b, "- %s\n", entry);
		}
	}
	return buf_take(&b);
}
