/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/convert.h - parts of CRI messages as structs of pods, and back
 *
 * Rules: functions that read a message copy its strings. Messages that are built point into the
 *        object that they describe and into the arena.
 */
#ifndef CRI_SERVICE_CONVERT_H
#define CRI_SERVICE_CONVERT_H

#include <protobuf-c/protobuf-c.h>

#include <hawser/field.h>

#include "base/arena.h"
#include "base/err.h"
#include "oci/resources.h"
#include "pod/spec/spec.h"

struct Runtime__V1__LinuxContainerResources; /* api/cri-v1.pb-c.h */
struct Runtime__V1__IDMapping;
struct Runtime__V1__NamespaceOption;
struct Runtime__V1__SELinuxOption;

/* protobuf-c declares strings without const, but does not write to them. */
static inline char *no_const(const char *s)
{
	return (char *)s;
}

/* The entries of a map field with values of type string, whose generated types differ only in their
 * names: CONVERT_MAP(config, labels) gives the arguments entries and n. */
#define CONVERT_MAP(object, field) (void *)(object)->field, (object)->n_##field

/* Overwrites *ret without freeing it. The keys are sorted, because clients send the same map in any
 * order. Of equal keys the last one is used, as protobuf requires. */
void convert_map(void *entries, size_t n, struct hw_map *ret);
/* Return: true if the map has all the entries */
bool convert_map_contains(const struct hw_map *map, void *entries, size_t n);
/* Builds the entries of a map field whose entries have the type @type. */
void *convert_entries(struct arena *a, const ProtobufCMessageDescriptor *type,
		      const struct hw_map *map);
/* The value of a deprecated field of type string; the compiler warns about its name. */
const char *convert_deprecated(const ProtobufCMessage *m, const char *field);
void convert_strings(char **strings, size_t n, struct hw_strings *ret);

/* @field: name of the message in errors */
int convert_resources(const struct Runtime__V1__LinuxContainerResources *m, const char *field,
		      struct oci_resources *ret, struct hw_err *e);
struct Runtime__V1__LinuxContainerResources *convert_make_resources(struct arena *a,
								    const struct oci_resources *r);

/* Return: a list of struct oci_mapping */
struct hw_list convert_mappings(struct Runtime__V1__IDMapping **list, size_t n);
/* Return: the number of elements of *ret_list */
size_t convert_make_mappings(struct arena *a, const struct hw_list *mappings,
			     struct Runtime__V1__IDMapping ***ret_list);
/* Leaves *n unchanged if @m is NULL. */
void convert_namespaces(const struct Runtime__V1__NamespaceOption *m, struct pod_namespaces *n);
/* Leaves *label unchanged if @m is NULL. */
void convert_selinux(const struct Runtime__V1__SELinuxOption *m, struct pod_selinux *label);

#endif
