/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/format.h - what writing and reading of recipes have in common
 */
#ifndef FETCH_RECIPE_FORMAT_H
#define FETCH_RECIPE_FORMAT_H

#define RECIPE_MAGIC	 "hawser recipe 1\n"
#define RECIPE_OTHER_MAX (64 << 10) /* bytes in one record */

enum {
	RECIPE_OTHER = 'o',
	RECIPE_FILE = 'f',
	RECIPE_END = 'e',
};

#endif
