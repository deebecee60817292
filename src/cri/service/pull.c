/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/pull.c - runtime.v1.ImageService/PullImage and hawser.v1.Images/Pull
 *
 * What:  PullImage responds when the image is in the store; Pull also streams the
 *        progress of each layer.
 * Rules: a call that is cancelled or reaches its deadline returns; the pull continues if
 *        other calls wait for it.
 */
#include "cri/service/services.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "base/str.h"
#include "cri/service/credentials.h"
#include "cri/service/executables.h"
#include "rpc/grpc/status.h"

/* ---- configuration ------------------------------------------------------------------ */

struct pull_options pull_options_from_config(const struct config *c, const char *program)
{
	return (struct pull_options){
		.program = program,
		.auth_file = *c->auth_file ? c->auth_file : NULL,
		.certs_dir = *c->certs_dir ? c->certs_dir : NULL,
		.mirrors = &c->registry_mirror,
		.plain_http = &c->plain_http,
		.idle_ms = c->pull_timeout * 1000,
		.layer_bytes = c->decompression_limit,
		.reserve = c->disk_reserve,
		.keep_blobs = c->keep_blobs,
		.uid = c->uid,
		.per_registry = config_pulls_per_registry(c),
	};
}

struct puller *puller_new_from_config(struct store *store, const struct config *c)
{
	autofree char *program = executable_helper("hawser-fetch");
	struct pull_options options = pull_options_from_config(c, program);

	return puller_new(store, &options);
}

void puller_set_config(struct puller *p, const struct config *c)
{
	autofree char *program = executable_helper("hawser-fetch");
	struct pull_options options = pull_options_from_config(c, program);

	puller_set_options(p, &options);
}

/* ---- PullImage ---------------------------------------------------------------------- */

static int run_pull(const struct image_service *s, struct rpc_call *call,
		    const struct credentials_given *given, struct pull_request *request,
		    struct pull_result *ret, struct hw_err *e)
{
	AUTO(credentials_done) struct credentials credentials = { 0 };
	AUTO(reference_done) struct reference ref = { 0 };
	int r;

	r = reference_parse(request->reference, &ref, e);
	if (r == 0)
		r = credentials_choose(given, &ref, &credentials, e);
	if (r < 0)
		return err_ctx(e, "pull image \"%.256s\"", request->reference);
	request->username = credentials.username;
	request->password = credentials.password;
	request->identity_token = credentials.identity_token;
	request->registry_token = credentials.registry_token;
	request->deadline = rpc_deadline(call);
	request->cancel_fd = rpc_cancel_fd(call);
	r = pull(s->puller, request, ret, e);
	if (r == 0)
		log_event(LOG_INFO, "pulled", "image", request->reference, "id", ret->id, NULL);
	return r;
}

int serve_pull_image(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		     struct hw_err *e)
{
	const struct image_service *s = ctx;
	const Runtime__V1__PullImageRequest *received =
		(const Runtime__V1__PullImageRequest *)message;
	Runtime__V1__PullImageResponse response = RUNTIME__V1__PULL_IMAGE_RESPONSE__INIT;
	struct pull_request request = { .reference =
						received->image ? received->image->image : "" };
	struct credentials_given given = { 0 };
	struct pull_result result;
	int r;

	if (!*request.reference)
		return status_set(e, STATUS_INVALID_ARGUMENT, "missing image name");
	if (received->auth)
		given = (struct credentials_given){
			.username = received->auth->username,
			.password = received->auth->password,
			.auth = received->auth->auth,
			.server_address = received->auth->server_address,
			.identity_token = received->auth->identity_token,
			.registry_token = received->auth->registry_token,
		};
	r = run_pull(s, call, &given, &request, &result, e);
	if (r < 0)
		return r;
	response.image_ref = result.id;
	return api_send(call, &response.base, e);
}

/* ---- progress ----------------------------------------------------------------------- */

struct progress_stream {
	struct rpc_call *call;
	struct pull_layer *sent; /* layers as last sent to the client */
	size_t n;
};

/* Sends the layers that have changed. Errors are ignored: if the client has disconnected, the
 * call is cancelled, and that ends this request. */
static void send_progress(void *ctx, const struct pull_layer *layers, size_t n)
{
	static const Hawser__V1__LayerProgress__State states[] = {
		[PULL_WAITING] = HAWSER__V1__LAYER_PROGRESS__STATE__WAITING,
		[PULL_FETCHING] = HAWSER__V1__LAYER_PROGRESS__STATE__DOWNLOADING,
		[PULL_UNPACKING] = HAWSER__V1__LAYER_PROGRESS__STATE__UNPACKING,
		[PULL_COMPLETE] = HAWSER__V1__LAYER_PROGRESS__STATE__DONE,
		[PULL_PRESENT] = HAWSER__V1__LAYER_PROGRESS__STATE__PRESENT,
	};
	struct progress_stream *p = ctx;
	autofree Hawser__V1__LayerProgress *messages = mem_new((n + 1) * sizeof(*messages));
	autofree Hawser__V1__LayerProgress **list =
		mem_new((n + 1) * sizeof(Hawser__V1__LayerProgress *));
	Hawser__V1__PullProgress response = HAWSER__V1__PULL_PROGRESS__INIT;
	struct hw_err e;

	for (size_t i = 0; i < n; i++) {
		const struct pull_layer *now = &layers[i];
		Hawser__V1__LayerProgress *m = &messages[i];

		if (i < p->n && p->sent[i].state == now->state && p->sent[i].bytes == now->bytes &&
		    p->sent[i].size == now->size)
			continue;
		hawser__v1__layer_progress__init(m);
		m->digest = (char *)now->digest;
		m->state = states[now->state];
		m->done_bytes = (uint64_t)now->bytes;
		m->total_bytes = (uint64_t)now->size;
		list[response.n_layers++] = m;
	}
	response.layers = list;
	if (response.n_layers > 0)
		api_send(p->call, &response.base, &e);
	p->sent = mem_resize(p->sent, n + 1, sizeof(*p->sent));
	if (n > 0)
		memcpy(p->sent, layers, n * sizeof(*layers));
	p->n = n;
}

/* "OS/ARCHITECTURE[/VARIANT]" */
static int parse_platform(const char *text, struct platform *ret, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };

	strings_split(text, '/', &words);
	if (words.n < 2 || words.n > 3 || !*words.v[0] || !*words.v[1])
		return status_set(e, STATUS_INVALID_ARGUMENT,
				  "platform \"%.100s\": expected OS/ARCHITECTURE[/VARIANT]", text);
	ret->os = str_copy(words.v[0]);
	ret->architecture = str_copy(words.v[1]);
	ret->variant = words.n == 3 ? str_copy(words.v[2]) : NULL;
	return 0;
}

int serve_pull(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e)
{
	const struct image_service *s = ctx;
	const Hawser__V1__PullRequest *received = (const Hawser__V1__PullRequest *)message;
	Hawser__V1__PullProgress response = HAWSER__V1__PULL_PROGRESS__INIT;
	AUTO(platform_done) struct platform platform = { 0 };
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL, *with_digest = NULL;
	struct progress_stream progress = { .call = call };
	struct pull_request request = {
		.reference = received->image,
		.progress = send_progress,
		.ctx = &progress,
	};
	struct credentials_given given = { 0 };
	struct pull_result result;
	int r;

	if (*received->platform) {
		r = parse_platform(received->platform, &platform, e);
		if (r < 0)
			return r;
		request.platform = &platform;
	}
	if (received->credentials)
		given = (struct credentials_given){
			.username = received->credentials->username,
			.password = received->credentials->password,
			.identity_token = received->credentials->identity_token,
			.registry_token = received->credentials->registry_token,
		};
	r = run_pull(s, call, &given, &request, &result, e);
	free(progress.sent);
	if (r < 0)
		return r;
	/* the last message contains the result */
	r = reference_parse(request.reference, &ref, e);
	if (r < 0)
		return r;
	name = reference_name(&ref);
	with_digest = str_printf("%s@%s", name, result.digest);
	response.image_id = result.id;
	response.image_ref = with_digest;
	return api_send(call, &response.base, e);
}
