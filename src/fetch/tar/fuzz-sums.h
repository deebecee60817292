/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/fuzz-sums.h - sets the checksums in an archive of a fuzz test
 *
 * With random checksums hardly any input would be read beyond its first block.
 */
#ifndef FETCH_TAR_FUZZ_SUMS_H
#define FETCH_TAR_FUZZ_SUMS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fetch/tar/tar.h"

#define SUM    8
#define SUM_AT 148

static inline void fix_checksums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
		unsigned int sum = 0;
		char text[SUM + 1];

		memset(data + at + SUM_AT, ' ', SUM);
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += data[at + i];
		if (sum == SUM * ' ') { /* a zero block ends the archive */
			memset(data + at + SUM_AT, 0, SUM);
			continue;
		}
		snprintf(text, sizeof(text), "%06o", sum);
		memcpy(data + at + SUM_AT, text, SUM - 1);
	}
}

#endif
