/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/result.h - CNI results
 *
 * What:  one data model, that of spec 1.1.0, for results of all versions.
 *        Results can be parsed and formatted in each of the seven spec versions.
 * Rules: a result is created by hw_result_new() or hw_result_parse() and freed
 *        by hw_result_free(), which also frees every string in it. Strings that
 *        the caller adds must therefore be malloc()ed. Later versions may add
 *        members at the end of struct hw_result, and may use the reserved members
 *        of array entries, which are zero until then.
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
	char *sandbox;	   /* path of the network namespace; NULL: the interface is on the host */
	int mtu;	   /* since spec 1.1.0 */
	char *socket_path; /* since spec 1.1.0 */
	char *pci_id;	   /* since spec 1.1.0 */
	uint64_t reserved[4];
};

struct hw_ipconf {
	bool has_iface;
	int iface; /* index in hw_result.ifaces */
	struct hw_prefix address;
	struct hw_ip gateway;
	uint64_t reserved[4];
};

struct hw_route {
	struct hw_prefix dst;
	struct hw_ip gw;
	int mtu, advmss, priority; /* since spec 1.1.0 */
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
	char *version; /* spec version of the parsed text; NULL: the result was not parsed */
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
 * Return: the result, freed with hw_result_free()
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
 * Return: the copy, which shares no memory with @result; freed with
 * hw_result_free()
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
 * @json:       the text, @len bytes; null is an empty result, as in libcni
 * @version:    version of a text without cniVersion; NULL or "": 0.1.0
 * @ret_result: freed with hw_result_free()
 *
 * Return: 0, or a negative errno (malformed JSON, unsupported version, value
 * of the wrong type)
 */
HW_PUBLIC int hw_result_parse(const char *json, size_t len, const char *version,
			      struct hw_result **ret_result, struct hw_err *e);

/**
 * hw_result_format() - format a result in a given version
 * @version:  NULL or "": 0.1.0
 * @flags:    HW_JSON_PRETTY, or 0
 * @ret_json: the text, freed by the caller
 *
 * Members that the version cannot express are dropped.
 *
 * Return: 0; -EINVAL if the version is not supported, or if it requires an
 * address and the result has none ("cannot convert: no valid IP addresses")
 */
HW_PUBLIC int hw_result_format(const struct hw_result *result, const char *version, unsigned flags,
			       char **ret_json, struct hw_err *e);

/**
 * hw_versions() - get the spec versions that this library supports
 *
 * Return: a constant array of the versions, oldest first, with NULL at the end
 */
HW_PUBLIC const char *const *hw_versions(void);

/**
 * hw_version_compare() - compare two spec versions
 * @a:         first version; NULL or "": 0.1.0
 * @b:         second version; NULL or "": 0.1.0
 * @ret_order: less than, equal to or greater than 0, as from strcmp()
 *
 * Unsupported versions can be compared, too.
 *
 * Return: 0; -EINVAL if a version does not consist of one to three numbers
 * separated by dots
 */
HW_PUBLIC int hw_version_compare(const char *a, const char *b, int *ret_order, struct hw_err *e);

#ifdef __cplusplus
}
#endif

#endif
