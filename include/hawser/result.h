/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/result.h - results of ADD
 *
 * What:  one struct for the results of all seven spec versions, with the fields
 *        of version 1.1.0; parsed from and formatted in any version.
 * Rules: hw_result_new() and hw_result_parse() create a result, hw_result_free()
 *        frees it with every string in it. Strings that the caller puts into it
 *        must be allocated with malloc(). Later versions of the library may add
 *        members at the end of struct hw_result, and in the reserved members of
 *        the other structs, which are zero until then.
 */
#ifndef HAWSER_RESULT_H
#define HAWSER_RESULT_H

#include <hawser/addr.h>
#include <hawser/err.h>
#include <hawser/field.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hw_iface {
	char *name;
	char *mac;
	char *sandbox;	   /* netns path; NULL: on the host */
	int mtu;	   /* 1.1.0 */
	char *socket_path; /* 1.1.0 */
	char *pci_id;	   /* 1.1.0 */
	uint64_t reserved[4];
};

struct hw_ipconf {
	bool has_iface;
	int iface; /* index into ifaces */
	struct hw_prefix address;
	struct hw_ip gateway;
	uint64_t reserved[4];
};

struct hw_route {
	struct hw_prefix dst;
	struct hw_ip gw;
	int mtu, advmss, priority; /* 1.1.0 */
	bool has_table, has_scope;
	int table, scope;
	uint64_t reserved[4];
};

struct hw_dns {
	struct hw_strings nameservers;
	char *domain;
	struct hw_strings search;
	struct hw_strings options;
};

struct hw_result {
	char *version; /* the spec version it was parsed from */
	struct hw_iface *ifaces;
	size_t n_ifaces;
	struct hw_ipconf *ips;
	size_t n_ips;
	struct hw_route *routes;
	size_t n_routes;
	struct hw_dns dns;
};

/**
 * hw_result_new() - create an empty result
 *
 * Return: the result; free it with hw_result_free()
 */
HW_PUBLIC struct hw_result *hw_result_new(void);

/**
 * hw_result_free() - free a result and every string in it
 * @result: may be NULL
 */
HW_PUBLIC void hw_result_free(struct hw_result *result);

/**
 * hw_result_copy() - copy a result
 * @result: the result to copy
 *
 * Return: the copy; free it with hw_result_free()
 */
HW_PUBLIC struct hw_result *hw_result_copy(const struct hw_result *result);

/**
 * hw_result_add_iface() - append an interface
 *
 * Return: the zeroed entry; valid until the next one is appended
 */
HW_PUBLIC struct hw_iface *hw_result_add_iface(struct hw_result *result);

/**
 * hw_result_add_ip() - append an address
 *
 * Return: the zeroed entry; valid until the next one is appended
 */
HW_PUBLIC struct hw_ipconf *hw_result_add_ip(struct hw_result *result);

/**
 * hw_result_add_route() - append a route
 *
 * Return: the zeroed entry; valid until the next one is appended
 */
HW_PUBLIC struct hw_route *hw_result_add_route(struct hw_result *result);

/**
 * hw_result_parse() - parse a result
 * @json:       the text, @len bytes
 * @version:    the version to assume if the text has no cniVersion; NULL or "": 0.1.0
 * @ret_result: the result; free it with hw_result_free()
 *
 * Return: 0, or a negative errno (unknown version, wrong types)
 */
HW_PUBLIC int hw_result_parse(const char *json, size_t len, const char *version,
			      struct hw_result **ret_result, struct hw_err *e);

/**
 * hw_result_format() - format a result in a given version
 * @version:  the spec version; NULL or "": 0.1.0
 * @flags:    HW_JSON_PRETTY
 * @ret_json: the text, to be freed by the caller
 *
 * Fields that the version does not have are left out. Fails if nothing would be
 * left ("cannot convert: no valid IP addresses").
 */
HW_PUBLIC int hw_result_format(const struct hw_result *result, const char *version, unsigned flags,
			       char **ret_json, struct hw_err *e);

/**
 * hw_versions() - get the spec versions that this library supports
 *
 * Return: the versions, oldest first, NULL at the end; constant
 */
HW_PUBLIC const char *const *hw_versions(void);

/**
 * hw_version_compare() - compare two spec versions ("" is 0.1.0)
 * @a:         the first version
 * @b:         the second version
 * @ret_order: less than, equal to or greater than 0
 */
HW_PUBLIC int hw_version_compare(const char *a, const char *b, int *ret_order, struct hw_err *e);

#ifdef __cplusplus
}
#endif

#endif
