/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/default-profile.h - the profile RuntimeDefault
 *
 * What:  the system calls that containerd and Docker also allow by default. A call that a capability
 *        of the container is needed for is allowed only with this capability.
 */
#ifndef OCI_SECCOMP_DEFAULT_PROFILE_H
#define OCI_SECCOMP_DEFAULT_PROFILE_H

#include "oci/seccomp/profile.h"

/* @ret: to be released with profile_done() */
void default_profile(const struct profile_target *target, struct profile *ret);

#endif
