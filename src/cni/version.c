/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/version.c - CNI spec versions: order and result format
 *
 * What:  compares versions as libcni does; maps each version to the format of
 *        its results.
 * Rules: a supported version is matched by its exact text. Comparison also
 *        accepts unsupported versions ("0.9", "2.0.0"), because configurations
 *        may contain them.
 */
#include "cni/version.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const versions[] = {
	"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0", NULL,
};
static const enum version_family families[] = {
	VERSION_FAMILY_IP4, VERSION_FAMILY_IP4, VERSION_FAMILY_IPS, VERSION_FAMILY_IPS,
	VERSION_FAMILY_IPS, VERSION_FAMILY_V1,	VERSION_FAMILY_V1,
};
_Static_assert(ARRAY_SIZE(families) + 1 == ARRAY_SIZE(versions), "one family for each version");

const char *const *hw_versions(void)
{
	return versions;
}

const char *version_or_oldest(const char *version)
{
	return str_empty(version) ? VERSION_OLDEST : version;
}

enum version_family version_family(const char *version)
{
	version = version_or_oldest(version);
	for (size_t i = 0; versions[i]; i++)
		if (str_equal(versions[i], version))
			return families[i];
	return VERSION_FAMILY_NONE;
}

/* Up to three numbers separated by dots; missing ones are 0. As in upstream, they may be negative:
 * its plugin noop supports "0.-42.0". */
static int version_parse(const char *version, int ret_parts[3], struct hw_err *e)
{
	const char *p = version = version_or_oldest(version);
	long long n;

	for (size_t i = 0; i < 3; i++) {
		autofree char *part = p ? str_ncopy(p, strcspn(p, ".")) : str_copy("0");

		if (!str_to_int64(part, INT_MIN, INT_MAX, &n))
			return err_text(e, -EINVAL,
					"invalid version \"%s\": \"%s\" is not a number", version,
					part);
		ret_parts[i] = (int)n;
		p = p ? strchr(p, '.') : NULL;
		if (p)
			p++;
	}
	if (p)
		return err_text(e, -EINVAL, "invalid version \"%s\": too many parts", version);
	return 0;
}

int hw_version_compare(const char *a, const char *b, int *ret_order, struct hw_err *e)
{
	int left[3], right[3], order = 0;
	int r;

	r = version_parse(a, left, e);
	if (r < 0)
		return r;
	r = version_parse(b, right, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < 3 && order == 0; i++)
		order = (left[i] > right[i]) - (left[i] < right[i]);
	*ret_order = order;
	return 0;
}

bool version_at_least(const char *version, const char *minimum)
{
	struct hw_err e;
	int order;

	return hw_version_compare(version, minimum, &order, &e) == 0 && order >= 0;
}
