/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/runtime.c - calls to the runtime
 *
 * How:   the first call connects to the runtime. If the runtime does not support a call
 *        of hawser.v1, its name and version are requested and become part of the error.
 */
#include "cli/hawser/hawser.h"

#include <errno.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

#define NS		   INT64_C(1000000000)
#define TIMEOUT_SHORT	   60
#define TIMEOUT_LONG	   3600
#define TIMEOUT_COMPLETION 2

int runtime_socket(struct cli *cli, struct hw_err *e)
{
	static const char *const prefixes[] = { "unix://", "unix:", "" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		const char *path = cli->runtime + strlen(prefixes[i]);

		if (!str_starts(cli->runtime, prefixes[i]) || *path != '/')
			continue;
		cli->socket = path;
		return 0;
	}
	return usage_error(cli, e,
			   "invalid value \"%s\" for --runtime: want the path of a socket, such as "
			   "unix:/run/hawser/cri.sock",
			   cli->runtime);
}

int runtime_connect(struct cli *cli, struct hw_err *e)
{
	int r;

	r = cli->client ? 0 : rpc_client_open(cli->socket, &cli->client, e);
	cli->error_source = r < 0 ? ERROR_CONNECT : ERROR_CALL;
	return r;
}

void runtime_disconnect(struct cli *cli)
{
	rpc_client_close(cli->client);
	cli->client = NULL;
}

int runtime_complete(struct cli *cli, struct hw_err *e)
{
	cli->timeout = TIMEOUT_COMPLETION;
	return runtime_socket(cli, e);
}

int64_t runtime_deadline(const struct cli *cli)
{
	int64_t seconds = cli->timeout;

	if (seconds < 0)
		seconds = cli->expected + (cli->command->is_long ? TIMEOUT_LONG : TIMEOUT_SHORT);
	return seconds ? time_now() + seconds * NS : TIME_NEVER;
}

int service_call(struct cli *cli, const ProtobufCServiceDescriptor *service, const char *method,
		 const ProtobufCMessage *request, void *ret_answer, struct hw_err *e)
{
	int r;

	r = runtime_connect(cli, e);
	if (r < 0)
		return r;
	return api_call(cli->client, service, method, request, runtime_deadline(cli),
			(ProtobufCMessage **)ret_answer, e);
}

int runtime_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
		 void *ret_answer, struct hw_err *e)
{
	return service_call(cli, &runtime__v1__runtime_service__descriptor, method, request,
			    ret_answer, e);
}

int runtime_begin(struct cli *cli, const char *method, const ProtobufCMessage *request,
		  struct rpc_stream **ret_stream, struct hw_err *e)
{
	int r;

	r = runtime_connect(cli, e);
	return r < 0 ? r
		     : api_stream_open(cli->client, &runtime__v1__runtime_service__descriptor,
				       method, request, runtime_deadline(cli), ret_stream, e);
}

int image_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
	       void *ret_answer, struct hw_err *e)
{
	return service_call(cli, &runtime__v1__image_service__descriptor, method, request,
			    ret_answer, e);
}

int image_status(struct cli *cli, const char *image, bool verbose,
		 Runtime__V1__ImageStatusResponse **ret, struct hw_err *e)
{
	Runtime__V1__ImageSpec spec = RUNTIME__V1__IMAGE_SPEC__INIT;
	Runtime__V1__ImageStatusRequest request = RUNTIME__V1__IMAGE_STATUS_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__ImageStatusResponse *answer = NULL;
	int r;

	spec.image = (char *)image;
	request.image = &spec;
	request.verbose = verbose;
	r = image_call(cli, "ImageStatus", &request.base, &answer, e);
	if (r < 0)
		return err_ctx(e, "image \"%s\"", image);
	if (!answer->image)
		return status_set(e, STATUS_NOT_FOUND, "image \"%s\": not found", image);
	*ret = take_ptr(answer);
	return 0;
}

int container_status(struct cli *cli, const char *word, const char *id,
		     Runtime__V1__ContainerStatusResponse **ret, struct hw_err *e)
{
	Runtime__V1__ContainerStatusRequest request = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__ContainerStatusResponse *answer = NULL;

	request.container_id = (char *)id;
	if (runtime_call(cli, "ContainerStatus", &request.base, &answer, e) < 0)
		return err_ctx(e, "status of container \"%s\"", word);
	if (!answer->status)
		return err_text(e, -EPROTO, "container \"%s\": the runtime returned no status",
				word);
	*ret = take_ptr(answer);
	return 0;
}

/* ---- hawser.v1 ------------------------------------------------------------------- */

int hawser_stream(struct cli *cli, const char *method, const ProtobufCMessage *request,
		  struct rpc_stream **ret_stream, struct hw_err *e)
{
	int r;

	r = runtime_connect(cli, e);
	if (r == 0)
		r = api_stream_open(cli->client, &hawser__v1__images__descriptor, method, request,
				    runtime_deadline(cli), ret_stream, e);
	return r;
}

bool is_unimplemented(const struct hw_err *e)
{
	return e->domain == HW_DOMAIN_GRPC && e->wire == STATUS_UNIMPLEMENTED;
}

int hawser_failed(struct cli *cli, const char *what, struct hw_err *e)
{
	Runtime__V1__VersionRequest request = RUNTIME__V1__VERSION_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__VersionResponse *version = NULL;
	struct hw_err ignored;
	int r;

	if (!is_unimplemented(e))
		return e->code;
	r = runtime_call(cli, "Version", &request.base, &version, &ignored);
	cli->error_source = ERROR_UNSUPPORTED;
	if (r < 0)
		return status_set(e, STATUS_UNIMPLEMENTED, "%s: not supported by the runtime at %s",
				  what, cli->socket);
	return status_set(e, STATUS_UNIMPLEMENTED, "%s: not supported by %s %s", what,
			  version->runtime_name, version->runtime_version);
}
