/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/signal.c - signals of CRI, which have numbers of their own, and of this machine
 *
 * How:   by name: SIGNAL_SIGTERM of CRI is TERM.
 */
#include "cri/service/signal.h"

#include <stddef.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/os/signal-name.h"
#include "base/str.h"

#define PREFIX "SIGNAL_SIG"

/* CRI has words where the usual names have characters: RTMIN+1 is RTMINPLUS1. */
static const struct {
	const char *cri, *usual;
} offsets[] = { { "RTMINPLUS", "RTMIN+" }, { "RTMAXMINUS", "RTMAX-" } };

static int find_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		autofree char *usual = NULL;

		if (!str_starts(name, offsets[i].cri))
			continue;
		usual = str_printf("%s%s", offsets[i].usual, name + strlen(offsets[i].cri));
		return signal_parse(usual);
	}
	return signal_parse(name);
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
