/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/expected.h - the names that a layer's tree should have, in bounded memory
 *
 * What:  a set of names. A name is known by its key, a hash of the inode of its directory and of the
 *        name itself: a path would need more memory, and a member's path may lead through links.
 * How:   the set has a maximum size. When it is full, it keeps only the keys of one half, and the
 *        caller collects and compares the other names in a further pass:
 *
 *	pass of part P out of N     keys with key % N == P
 *	when it is full             N doubles; keys of part P + N (old N) are dropped
 *
 * Rules: the hash has 64 bits, so that two names of a layer have the same key by chance with a
 *        probability of less than one in ten million.
 */
#ifndef FETCH_LAYER_EXPECTED_H
#define FETCH_LAYER_EXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mem.h"

#define EXPECTED_MAX (1 << 17) /* names in a pass: 6 MiB */

enum expected_kind {
	EXPECT_WHITEOUT,  /* a device 0:0 */
	EXPECT_IMPLIED,	  /* a directory, with any attributes (from the layers below) */
	EXPECT_DIRECTORY, /* a directory with the attributes of its last member */
	EXPECT_OTHER,	  /* exists; was compared when its member was read */
	EXPECT_OPAQUE,	  /* the directory whose inode is in the key, with the name "", is opaque */
};

struct expected_name {
	uint64_t key; /* 0: unused */
	uid_t uid;    /* owner and mode are set for EXPECT_DIRECTORY only */
	gid_t gid;
	uint16_t mode;
	uint8_t kind; /* enum expected_kind: the highest of all members with this name */
};

struct expected;

/* @max: at least 1. @parts: a power of two */
struct expected *expected_new(uint32_t part, uint32_t parts, size_t max);
void expected_free(struct expected *x);
uint64_t expected_key(struct expected *x, ino_t dir, const char *name);
bool expected_in_pass(const struct expected *x, uint64_t key); /* only these keys are in the set */
struct expected_name *expected_find(const struct expected *x, uint64_t key); /* or NULL */
/* Add a name, or raise the kind of an existing one. Return: the name, until the next addition;
 * NULL: belongs to another pass */
struct expected_name *expected_add(struct expected *x, uint64_t key, enum expected_kind kind);
uint32_t expected_parts(const struct expected *x); /* at the end of a pass: the last N */

AUTO_DEFINE(expected_free, struct expected);

#endif
