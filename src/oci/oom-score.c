/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/oom-score.c - oom_score_adj of processes that this one starts
 */
#include "oci/oom-score.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os/file.h"

#define SCORE_MAX 16 /* bytes of the file */

static bool has_sys_resource(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE));
}

int oom_score_clamp(int wanted, int *ret_score, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int own, r;

	if (has_sys_resource()) {
		*ret_score = wanted;
		return 0;
	}
	r = file_read(AT_FDCWD, "/proc/self/oom_score_adj", SCORE_MAX, &text, e);
	if (r < 0)
		return r;
	own = text.len > 0 ? (int)strtol(text.data, NULL, 10) : 0;
	*ret_score = wanted > own ? wanted : own;
	return 0;
}
