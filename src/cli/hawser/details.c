/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/details.c - what hawser.v1 tells about pods and containers, and CRI does not
 */
#include "api/hawser-v1.pb-c.h"
#include "cli/hawser/hawser.h"

int details_get(struct cli *cli, struct details *ret, struct hw_err *e)
{
	Hawser__V1__ListLostContainersRequest containers =
		HAWSER__V1__LIST_LOST_CONTAINERS_REQUEST__INIT;
	Hawser__V1__ListPodsRequest pods = HAWSER__V1__LIST_PODS_REQUEST__INIT;
	int r;

	r = service_call(cli, &hawser__v1__pods__descriptor, "List", &pods.base, &ret->pods, e);
	if (r < 0)
		return is_unimplemented(e) ? 0 : err_ctx(e, "list pods");
	r = service_call(cli, &hawser__v1__containers__descriptor, "ListLost", &containers.base,
			 &ret->containers, e);
	return r < 0 ? err_ctx(e, "list lost containers") : 0;
}

void details_done(struct details *details)
{
	auto_api_free(&details->pods);
	auto_api_free(&details->containers);
}

bool details_is_lost(const Hawser__V1__PodDetails *pod)
{
	return pod->state == HAWSER__V1__POD_DETAILS__STATE__LOST;
}
