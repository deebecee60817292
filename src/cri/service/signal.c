/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/signal.c - signals of CRI, which have numbers of their own, and of this machine
 *
 * How:   by name: SIGNAL_SIGTERM of CRI is TERM.
 */
#include "cri/service/signal.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"

#define PREFIX "SIGNAL_SIG"

/* Names that are not those of glibc. */
static const struct {
	const char *cri, *glibc;
} aliases[] = { { "CLD", "CHLD" }, { "IOT", "ABRT" }, { "IO", "POLL" } };

static int find_realtime(const char *name)
{
	long long n = 0;

	if (str_starts(name, "RTMIN")) {
		name += strlen("RTMIN");
		if (*name && (!str_starts(name, "PLUS") || !str_to_int64(name + 4, 1, 64, &n)))
			return -1;
		n += SIGRTMIN;
	} else if (str_starts(name, "RTMAX")) {
		name += strlen("RTMAX");
		if (*name && (!str_starts(name, "MINUS") || !str_to_int64(name + 5, 1, 64, &n)))
			return -1;
		n = SIGRTMAX - n;
	} else {
		return -1;
	}
	return n >= SIGRTMIN && n <= SIGRTMAX ? (int)n : -1;
}

static int find_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (str_equal(aliases[i].cri, name))
			name = aliases[i].glibc;
	for (int n = 1; n < SIGRTMIN; n++)
		if (str_equal(sigabbrev_np(n), name))
			return n;
	return find_realtime(name);
}

int signal_from_cri(int value)
{
	const ProtobufCEnumValue *v =
		protobuf_c_enum_descriptor_get_value(&runtime__v1__signal__descriptor, value);

	if (value == RUNTIME__V1__SIGNAL__SIGNAL_RUNTIME_DEFAULT)
		return 0;
	return v && str_starts(v->name, PREFIX) ? find_name(v->name + strlen(PREFIX)) : -1;
}

int signal_to_cri(int number)
{
	const ProtobufCEnumDescriptor *d = &runtime__v1__signal__descriptor;

	for (unsigned i = 0; i < d->n_values; i++)
		if (signal_from_cri(d->values[i].value) == number && d->values[i].value)
			return d->values[i].value;
	return 0;
}
