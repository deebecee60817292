/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/version.h - the seven spec versions and what each of them allows
 */
#ifndef CNI_VERSION_H
#define CNI_VERSION_H

#include <stdbool.h>

#include <hawser/result.h>

#define VERSION_OLDEST "0.1.0" /* what a missing cniVersion means */
#define VERSION_NEWEST "1.1.0"

/* The shape that results of a version have. */
enum version_family {
	VERSION_FAMILY_NONE, /* not a version we know */
	VERSION_FAMILY_IP4,  /* 0.1.0 0.2.0: ip4, ip6 */
	VERSION_FAMILY_IPS,  /* 0.3.0 0.3.1 0.4.0: interfaces, ips with version */
	VERSION_FAMILY_ONE,  /* 1.0.0 1.1.0 */
};

enum version_family version_family(const char *version); /* "" and NULL: 0.1.0's */
const char *version_or_oldest(const char *version);	 /* NULL and "" become 0.1.0 */
/* Is version at least than? false too when it cannot be parsed. */
bool version_at_least(const char *version, const char *than);

#endif
