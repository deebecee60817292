/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/platform.c - platforms of images and machines
 *
 * How:   a variant becomes a number, its level: v7 is 700, v8.2 is 802. A machine
 *        runs images of its own level and below; the nearest level is best. Images
 *        of an older architecture that the machine also runs come last. The order
 *        is the same as in containerd:
 *
 *	machine    images, best first
 *	amd64/vN   amd64/vN ... amd64/v1, 386
 *	arm64/v9.N arm64/v9.N ... v9.0, v8.(N+5) ... v8.0, then the list of arm/v8
 *	arm64/v8.N arm64/v8.N ... v8.0, then the list of arm/v8
 *	arm/vN     arm/vN ... arm/v5
 */
#include "image/platform.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/str.h"

const struct hw_field platform_fields[] = {
	{ "os", HW_STRING, HW_AT(struct platform, os), .help = "operating system" },
	{ "architecture", HW_STRING, HW_AT(struct platform, architecture),
	  .help = "architecture, as Go spells it" },
	{ "variant", HW_STRING, HW_AT(struct platform, variant),
	  .help = "variant of the architecture" },
	{ 0 },
};

/* All names of each architecture, and its default level. */
static const struct architecture {
	const char *alias, *name;
	int level;
} architectures[] = {
	{ "amd64", "amd64", 100 }, { "x86_64", "amd64", 100 },	{ "x86-64", "amd64", 100 },
	{ "arm64", "arm64", 800 }, { "aarch64", "arm64", 800 }, { "arm", "arm", 700 },
	{ "armhf", "arm", 700 },   { "armel", "arm", 600 },	{ "386", "386", 0 },
	{ "i386", "386", 0 },
};

#define LEVEL_V5 500
#define LEVEL_V8 800
#define LEVEL_V9 900
#define OLDER	 10000 /* added to the rank of an older architecture; larger than other ranks */

struct machine {
	const char *name;
	const char *variant;
	int level; /* -1: the variant is not a level */
};

/* Accepts "v8", "8" and "v8.2". Return: the level, or -1 */
static int level_parse(const char *s)
{
	int level;

	if (*s == 'v' || *s == 'V')
		s++;
	if (!isdigit((unsigned char)*s))
		return -1;
	level = (*s++ - '0') * 100;
	if (*s == '.' && isdigit((unsigned char)s[1])) {
		level += s[1] - '0';
		s += 2;
	}
	return *s ? -1 : level;
}

static struct machine machine_of(const struct platform *p)
{
	struct machine m = { str_or(p->architecture, ""), str_or(p->variant, ""), 0 };

	for (size_t i = 0; i < ARRAY_SIZE(architectures); i++)
		if (strcasecmp(m.name, architectures[i].alias) == 0) {
			m.name = architectures[i].name;
			m.level = architectures[i].level;
			if (*m.variant && m.level)
				m.level = level_parse(m.variant);
			return m;
		}
	return m;
}

static int rank_arm(int wanted, int offered)
{
	return offered >= LEVEL_V5 && offered <= wanted ? wanted - offered : PLATFORM_NONE;
}

static int rank_arm64(int wanted, int offered)
{
	if (offered < LEVEL_V8)
		return PLATFORM_NONE;
	if (wanted >= LEVEL_V9 && offered < LEVEL_V9) {
		int v8_level = wanted - LEVEL_V9 + LEVEL_V8 + 5; /* v9.0 includes v8.5 */

		return offered <= v8_level ? wanted - LEVEL_V9 + 1 + v8_level - offered
					   : PLATFORM_NONE;
	}
	return offered <= wanted ? wanted - offered : PLATFORM_NONE;
}

int platform_rank(const struct platform *wanted, const struct platform *offered)
{
	struct machine w = machine_of(wanted), o = machine_of(offered);
	bool same = str_equal(w.name, o.name);
	int rank;

	if (strcasecmp(str_or(wanted->os, ""), str_or(offered->os, "")) != 0)
		return PLATFORM_NONE;
	if (w.level <= 0 || o.level < 0) /* there are no levels to compare */
		return same && str_equal(w.variant, o.variant) ? 0 : PLATFORM_NONE;
	if (str_equal(w.name, "arm") && same)
		return rank_arm(w.level, o.level);
	if (str_equal(w.name, "arm64") && same)
		return rank_arm64(w.level, o.level);
	if (str_equal(w.name, "arm64") && str_equal(o.name, "arm")) {
		rank = rank_arm(LEVEL_V8, o.level);
		return rank < 0 ? rank : rank + OLDER;
	}
	if (str_equal(w.name, "amd64") && same && o.level <= w.level)
		return w.level - o.level;
	if (str_equal(w.name, "amd64") && str_equal(o.name, "386"))
		return OLDER;
	return PLATFORM_NONE;
}

void platform_of_host(struct platform *ret_platform)
{
	struct utsname u = { 0 };
	struct platform machine;

	uname(&u);
	machine = (struct platform){ .architecture = u.machine };
	*ret_platform = (struct platform){
		.os = str_copy("linux"),
		.architecture = str_copy(machine_of(&machine).name),
	};
}

void platform_done(struct platform *p)
{
	hw_field_clear(platform_fields, p);
}

char *platform_format(const struct platform *p)
{
	return str_printf("%s/%s%s%s", str_or(p->os, ""), str_or(p->architecture, ""),
			  str_empty(p->variant) ? "" : "/", str_or(p->variant, ""));
}
