/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/mapping.h - users or groups of a user namespace, and those of the host that they are
 */
#ifndef OCI_MAPPING_H
#define OCI_MAPPING_H

#include <stdint.h>

struct oci_mapping {
	uint32_t container_id, host_id, size;
};

#endif
