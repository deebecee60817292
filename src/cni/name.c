/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/name.c - validation of network names, container IDs and interface names
 *
 * Rules: error texts and CNI codes are upstream's. Lengths are in bytes. A
 *        trailing newline is rejected.
 */
#include "cni/name.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool name_is_valid(const char *s)
{
	return strspn(s, ALNUM) > 0 && s[strspn(s, ALNUM "_.-")] == '\0';
}

int name_check_network(const char *name, struct hw_err *e)
{
	if (str_empty(name))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "missing network name:");
	if (name_is_valid(name))
		return 0;
	err_cni(e, HW_CNI_INVALID_CONFIG, "invalid characters found in network name");
	return err_details(e, "%s", name);
}

int name_check_container(const char *id, struct hw_err *e)
{
	if (str_empty(id))
		return err_cni(e, HW_CNI_UNKNOWN_CONTAINER, "missing containerID");
	if (name_is_valid(id))
		return 0;
	err_cni(e, HW_CNI_INVALID_ENV, "invalid characters in containerID");
	return err_details(e, "%s", id);
}

/* Unicode white space (Go's unicode.IsSpace), and '/' and ':', which the kernel rejects. */
static bool has_forbidden_char(const char *s)
{
	static const char *const forbidden[] = {
		"/",
		":",
		" ",
		"\t",
		"\n",
		"\v",
		"\f",
		"\r",
		"\xc2\x85",	/* U+0085 next line */
		"\xc2\xa0",	/* U+00A0 no-break space */
		"\xe1\x9a\x80", /* U+1680 ogham space mark */
		"\xe2\x80\x80", /* U+2000 to U+200A: spaces of various widths */
		"\xe2\x80\x81",
		"\xe2\x80\x82",
		"\xe2\x80\x83",
		"\xe2\x80\x84",
		"\xe2\x80\x85",
		"\xe2\x80\x86",
		"\xe2\x80\x87",
		"\xe2\x80\x88",
		"\xe2\x80\x89",
		"\xe2\x80\x8a",
		"\xe2\x80\xa8", /* U+2028 line separator */
		"\xe2\x80\xa9", /* U+2029 paragraph separator */
		"\xe2\x80\xaf", /* U+202F narrow no-break space */
		"\xe2\x81\x9f", /* U+205F medium mathematical space */
		"\xe3\x80\x80", /* U+3000 ideographic space */
	};

	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
		if (strstr(s, forbidden[i]))
			return true;
	return false;
}

int name_check_ifname(const char *ifname, struct hw_err *e)
{
	if (str_empty(ifname))
		return err_cni(e, HW_CNI_INVALID_ENV, "interface name is empty");
	if (strlen(ifname) > 15) {
		err_cni(e, HW_CNI_INVALID_ENV, "interface name is too long");
		return err_details(e, "interface name should be less than 16 characters");
	}
	if (str_equal(ifname, ".") || str_equal(ifname, ".."))
		return err_cni(e, HW_CNI_INVALID_ENV, "interface name is . or ..");
	if (has_forbidden_char(ifname))
		return err_cni(e, HW_CNI_INVALID_ENV,
			       "interface name contains / or : or whitespace characters");
	return 0;
}
