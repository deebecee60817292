/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/version.c - the seven spec versions and what each of them allows
 *
 * What:  order versions as libcni does, and know the result family of each.
 * Rules: a version is known by its exact text; ordering also takes those that
 *        are not known ("0.9", "2.0.0"), as a configuration may name them.
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
	VERSION_FAMILY_IPS, VERSION_FAMILY_ONE, VERSION_FAMILY_ONE,
};
_Static_assert(ARRAY_SIZE(families) + 1 == ARRAY_SIZE(versions), "one family for each version");

/**
 * hw_versions() - the spec versions of this library, oldest first, NULL at the end
 */
const char *const *hw_versions(void)
{
	return versions;
}

/**
 * version_or_oldest() - what a cniVersion means
 * @version: NULL and "" are 0.1.0, as a configuration without it is
 */
const char *version_or_oldest(const char *version)
{
	return str_empty(version) ? VERSION_OLDEST : version;
}

/**
 * version_family() - the shape of a version's results
 *
 * Return: VERSION_FAMILY_NONE when the version is not one of hw_versions()
 */
enum version_family version_family(const char *version)
{
	version = version_or_oldest(version);
	for (size_t i = 0; versions[i]; i++)
		if (str_equal(versions[i], version))
			return families[i];
	return VERSION_FAMILY_NONE;
}

/* Up to three numbers; those that are missing are 0. */
static int version_parse(const char *version, int ret_parts[3], struct hw_err *e)
{
	const char *p = version = version_or_oldest(version);
	long long n;

	for (size_t i = 0; i < 3; i++) {
		autofree char *part = p ? str_ncopy(p, strcspn(p, ".")) : str_copy("0");

		if (!str_to_int64(part, 0, INT_MAX, &n))
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

/**
 * hw_version_compare() - order two spec versions
 * @a:         NULL and "" are 0.1.0
 * @ret_order: less than, equal to or greater than 0
 *
 * Return: 0, or -EINVAL when one of them is not up to three numbers
 */
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

/**
 * version_at_least() - may what came with @than be used?
 *
 * Return: false too when one of them is not a version
 */
bool version_at_least(const char *version, const char *than)
{
	struct hw_err e;
	int order;

	return hw_version_compare(version, than, &order, &e) == 0 && order >= 0;
}
