/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/profile.h - seccomp profiles: which system calls a container may make
 *
 * What:  a profile in the form of OCI (linux.seccomp of config.json), or of Docker, which adds
 *        conditions to a rule (includes, excludes) and a map of architectures (archMap).
 *        profile_resolve() decides the conditions for one container; what remains is in OCI's form.
 * Not:   the words of actions, architectures and comparisons are checked by hawser-seccomp, which
 *        needs libseccomp for that.
 */
#ifndef OCI_SECCOMP_PROFILE_H
#define OCI_SECCOMP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

#define PROFILE_MAX   (1 << 20) /* bytes of a profile's text */
#define PROFILE_ERRNO "SCMP_ACT_ERRNO"
#define PROFILE_ALLOW "SCMP_ACT_ALLOW"

/* A condition on an argument of a system call. */
struct profile_argument {
	uint32_t index;		  /* 0 to 5 */
	int64_t value, value_two; /* value_two: for SCMP_CMP_MASKED_EQ, where value is the mask */
	char *op;		  /* SCMP_CMP_EQ ... */
};

/* When a rule is part of the profile. Empty: always. */
struct profile_condition {
	struct hw_strings capabilities, architectures; /* CAP_SYS_ADMIN ..., amd64 ... */
	char *min_kernel;			       /* "5.12" */
};

struct profile_rule {
	char *name; /* Docker's old form; then @names is empty */
	struct hw_strings names;
	char *action; /* SCMP_ACT_ALLOW ... */
	bool has_errno;
	uint32_t error;		  /* for SCMP_ACT_ERRNO and SCMP_ACT_TRACE */
	struct hw_list arguments; /* struct profile_argument: all must hold */
	struct profile_condition includes, excludes;
};

struct profile_arch {
	char *name;
	struct hw_strings subs;
};

struct profile {
	char *default_action; /* of calls without a rule */
	bool has_default_errno;
	uint32_t default_errno;
	struct hw_strings architectures; /* SCMP_ARCH_X86_64 ...; empty: only that of the machine */
	struct hw_list arch_map;	 /* struct profile_arch; Docker's form */
	struct hw_strings flags;	 /* SECCOMP_FILTER_FLAG_LOG ... */
	char *listener_path;
	struct hw_list rules; /* struct profile_rule */
};

/* An architecture of machines, with those of the programs that it also runs. */
struct profile_machine {
	const char *name;    /* as Go calls it: amd64 */
	const char *arch[4]; /* SCMP_ARCH_X86_64 ...; its own first; NULL at the end */
};

/* What the conditions of a profile are about. */
struct profile_target {
	const struct profile_machine *machine;
	const struct hw_strings
		*capabilities; /* the bounding set of the container: CAP_CHOWN ... */
	const char *kernel;    /* release, as uname() reports it */
};

/* @name: of struct profile_machine; NULL: this machine. Return: NULL if it is not known */
const struct profile_machine *profile_machine(const char *name);

/* Return: 0; -EINVAL if the text is malformed, also if a rule has no action or a call has no name;
 * -EFBIG if it has more than PROFILE_MAX bytes */
int profile_decode(const char *text, size_t len, struct profile *ret, struct hw_err *e);
/* Decides all conditions. Return: 0; -EINVAL, also for a listener: no process would serve it */
int profile_resolve(struct profile *p, const struct profile_target *target, struct hw_err *e);
/* Return: the text in OCI's form, to be freed by the caller */
char *profile_encode(const struct profile *p);
void profile_done(struct profile *p);
AUTO_VALUE_DEFINE(profile_done, struct profile);

/* Appends an empty rule. Return: valid until the next call */
struct profile_rule *profile_add_rule(struct profile *p);

#endif
