/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-data.h - access to test/data for unit tests
 */
#ifndef CNI_TEST_DATA_H
#define CNI_TEST_DATA_H

#include <fcntl.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json/value.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/test.h"

/* The source tree is $HAWSER_SRC, or the current directory if that is not set. */
static inline char *test_data_path(const char *name)
{
	return str_printf("%s/test/data/%s", str_or(getenv("HAWSER_SRC"), "."), name);
}

static inline void test_data(const char *name, struct buf *ret_text)
{
	autofree char *path = test_data_path(name);
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, path, VALUE_SIZE_MAX, ret_text, &e), e);
}

#endif
