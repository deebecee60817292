/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/files.h - the files that the containers of a pod share: resolv.conf, hosts, hostname, /dev/shm
 */
#ifndef POD_FILES_H
#define POD_FILES_H

#include <hawser/field.h>

#include "base/err.h"
#include "pod/spec/spec.h"

/* Creates the directory @dir with resolv.conf, hostname and shm. */
int files_create(const char *dir, const struct pod_spec *spec, struct hw_err *e);
/* Creates the pod's directory for logs, which stays when the pod is removed. */
int files_create_logs(const struct pod_spec *spec, struct hw_err *e);
/* Writes hosts, when the addresses of the pod are known. */
int files_write_hosts(const char *dir, const struct pod_spec *spec, const struct hw_strings *ips,
		      struct hw_err *e);
/* Unmounts shm. Idempotent. */
int files_unmount(const char *dir, struct hw_err *e);

#endif
