/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/version.h - CNI spec versions: order and result format
 *
 * A missing version (NULL or "") means 0.1.0 everywhere.
 */
#ifndef CNI_VERSION_H
#define CNI_VERSION_H

#include <stdbool.h>

#include <hawser/result.h>

#define VERSION_OLDEST "0.1.0" /* the meaning of a missing cniVersion */
#define VERSION_NEWEST "1.1.0"

/* Versions with the same result format. */
enum version_family {
	VERSION_FAMILY_NONE, /* the version is not in hw_versions() */
	VERSION_FAMILY_IP4,  /* 0.1.0 0.2.0: ip4, ip6 */
	VERSION_FAMILY_IPS,  /* 0.3.0 0.3.1 0.4.0: interfaces, ips with version */
	VERSION_FAMILY_V1,   /* 1.0.0 1.1.0 */
};

enum version_family version_family(const char *version);
/* Return: @version, or VERSION_OLDEST if it is missing */
const char *version_or_oldest(const char *version);
/* Return: true if @version >= @minimum; false also if one of them is malformed */
bool version_at_least(const char *version, const char *minimum);

#endif
