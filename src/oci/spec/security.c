/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/security.c - masked and read-only paths, seccomp, AppArmor, SELinux
 *
 * How:   crun takes a compiled seccomp filter from an annotation. Compiling a profile with libseccomp
 *        for each container would take 20 ms.
 */
#include "oci/spec/security.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/os/file.h"
#include "base/str.h"

#define SECCOMP_ANNOTATION "run.oci.seccomp_bpf_data"
#define PROFILES_MAX	   (4 << 20)
#define LABEL_MAX	   4096

static int add_paths(const struct hw_strings *from, struct hw_strings *to, struct hw_err *e)
{
	for (size_t i = 0; from && i < from->n; i++) {
		if (from->v[i][0] != '/')
			return err_text(e, -EINVAL, "path \"%.200s\": not an absolute path",
					from->v[i]);
		strings_add(to, from->v[i]);
	}
	return 0;
}

/* ---- AppArmor ------------------------------------------------------------------------------------ */

/* Lines of NAME (MODE). A name may contain spaces. */
static bool has_profile(char *text, const char *profile)
{
	char *next;

	for (char *line = text; line && *line; line = next) {
		char *mode;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		mode = strrchr(line, '(');
		if (mode && mode > line)
			mode[-1] = '\0';
		if (str_equal(line, profile))
			return true;
	}
	return false;
}

static int check_apparmor(const char *root, const char *profile, struct hw_err *e)
{
	autofree char *enabled = str_printf("%s/sys/module/apparmor/parameters/enabled", root);
	autofree char *list = str_printf("%s/sys/kernel/security/apparmor/profiles", root);
	AUTO(buf_done) struct buf state = { 0 }, profiles = { 0 };
	int r;

	r = file_read_if_exists(AT_FDCWD, enabled, 16, &state, e);
	if (r < 0)
		return r;
	if (r == 0 || !str_starts(str_or(state.data, ""), "Y"))
		return err_text(e, -EOPNOTSUPP,
				"AppArmor profile %.200s: this host has no AppArmor", profile);
	r = file_read(AT_FDCWD, list, PROFILES_MAX, &profiles, e);
	if (r < 0)
		return r;
	if (!has_profile(profiles.data, profile))
		return err_text(e, -ENOENT, "AppArmor profile %.200s is not loaded", profile);
	return 0;
}

/* ---- SELinux ------------------------------------------------------------------------------------- */

/* USER:ROLE:TYPE[:LEVEL]; a level may contain colons. */
static bool is_label(const char *label)
{
	int parts = 0;

	if (strlen(label) > LABEL_MAX)
		return false;
	while (parts < 3) {
		size_t len = strcspn(label, ":");

		if (len == 0)
			return false;
		label += len;
		parts++;
		if (!*label)
			break;
		label++;
		if (!*label)
			return false;
	}
	return parts == 3;
}

static int check_selinux(const char *root, const char *label, struct hw_err *e)
{
	autofree char *enforce = str_printf("%s/sys/fs/selinux/enforce", root);

	if (!label)
		return 0;
	if (!is_label(label))
		return err_text(e, -EINVAL,
				"SELinux label \"%.200s\": expected USER:ROLE:TYPE:LEVEL", label);
	if (access(enforce, F_OK) < 0)
		return err_text(e, -EOPNOTSUPP, "SELinux label %.200s: this host has no SELinux",
				label);
	return 0;
}

/* -------------------------------------------------------------------------------------------------- */

static void set_seccomp(struct oci_spec *s, const struct spec_security *security)
{
	autofree char *text = NULL;

	if (security->seccomp_bpf) {
		text = base64_encode(security->seccomp_bpf, security->seccomp_len);
		spec_annotate(s, SECCOMP_ANNOTATION, text);
	}
	s->seccomp = str_copy(security->seccomp);
}

int spec_set_security(struct oci_spec *s, const struct spec_security *security, struct hw_err *e)
{
	const char *root = str_or(security->root, "");
	int r = 0;

	s->readonly_root = security->readonly_root;
	if (!security->privileged) {
		r = add_paths(security->masked_paths, &s->masked_paths, e);
		if (r == 0)
			r = add_paths(security->readonly_paths, &s->readonly_paths, e);
		set_seccomp(s, security);
	}
	if (r == 0 && security->apparmor)
		r = check_apparmor(root, security->apparmor, e);
	if (r == 0)
		r = check_selinux(root, security->selinux_label, e);
	if (r == 0)
		r = check_selinux(root, security->mount_label, e);
	if (r < 0)
		return r;
	s->process.apparmor_profile = str_copy(security->apparmor);
	s->process.selinux_label = str_copy(security->selinux_label);
	s->mount_label = str_copy(security->mount_label);
	return 0;
}
