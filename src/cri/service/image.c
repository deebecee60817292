/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/image.c - runtime.v1.ImageService
 *
 * How:   lists are built from the store's snapshot. The messages point into it, so that
 *        a thousand images cost a few arrays and no copied strings.
 * Rules: ImageStatus and RemoveImage succeed if the image does not exist.
 */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/json/value.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/service/services.h"
#include "pod/stats.h"
#include "rpc/grpc/status.h"

#define IMAGES_PER_MESSAGE 200 /* in responses of StreamImages */

/* ---- images as messages ------------------------------------------------------------- */

/* An image message, and the uid message that it points to. */
struct image_message {
	Runtime__V1__Image image;
	Runtime__V1__Int64Value uid;
};

static void set_image(struct image_message *m, const struct store_image *image)
{
	runtime__v1__image__init(&m->image);
	m->image.id = (char *)image->id;
	m->image.n_repo_tags = image->tags.n;
	m->image.repo_tags = image->tags.v;
	m->image.n_repo_digests = image->digests.n;
	m->image.repo_digests = image->digests.v;
	m->image.size = (uint64_t)image->size;
	m->image.pinned = image->pinned;
	if (image->has_uid) {
		runtime__v1__int64_value__init(&m->uid);
		m->uid.value = image->uid;
		m->image.uid = &m->uid;
	} else if (!str_empty(image->username)) {
		m->image.username = image->username;
	}
}

/* Messages for images of a snapshot. They point into the snapshot, so the caller keeps it until
 * they are sent. */
struct image_list {
	struct image_message *messages;
	Runtime__V1__Image **pointers;
	size_t n;
};

static void image_list_done(struct image_list *list)
{
	free(list->messages);
	free(list->pointers);
}

AUTO_VALUE_DEFINE(image_list_done, struct image_list);

static void make_list(const struct store_image *const *images, size_t n, struct image_list *ret)
{
	ret->n = n;
	ret->messages = mem_new((n + 1) * sizeof(*ret->messages));
	ret->pointers = mem_new((n + 1) * sizeof(Runtime__V1__Image *));
	for (size_t i = 0; i < n; i++) {
		set_image(&ret->messages[i], images[i]);
		ret->pointers[i] = &ret->messages[i].image;
	}
}

static const char *image_name(const Runtime__V1__ImageSpec *spec)
{
	return spec ? spec->image : "";
}

static int check_image_name(const Runtime__V1__ImageSpec *spec, struct hw_err *e)
{
	if (*image_name(spec))
		return 0;
	return status_set(e, STATUS_INVALID_ARGUMENT, "missing image name");
}

/* ---- lists -------------------------------------------------------------------------- */

/* Selects all images, or only the image that the filter names. In that case *ret_images points to
 * @one. */
static int apply_filter(const struct store_snapshot *snap, const Runtime__V1__ImageFilter *filter,
			const struct store_image **one,
			const struct store_image *const **ret_images, size_t *ret_n,
			struct hw_err *e)
{
	const char *name = filter ? image_name(filter->image) : "";
	int r;

	*ret_images = snap->images;
	*ret_n = snap->n;
	if (!*name)
		return 0;
	r = store_snapshot_find(snap, name, one, e);
	*ret_images = one;
	*ret_n = r == 1;
	return r < 0 ? r : 0;
}

static int serve_list_images(const void *ctx, struct rpc_call *call,
			     const ProtobufCMessage *request, struct hw_err *e)
{
	const struct image_service *s = ctx;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s->store);
	Runtime__V1__ListImagesResponse response = RUNTIME__V1__LIST_IMAGES_RESPONSE__INIT;
	AUTO(image_list_done) struct image_list list = { 0 };
	const struct store_image *const *images, *one = NULL;
	size_t n;
	int r;

	r = apply_filter(snap, ((const Runtime__V1__ListImagesRequest *)request)->filter, &one,
			 &images, &n, e);
	if (r < 0)
		return r;
	make_list(images, n, &list);
	response.n_images = list.n;
	response.images = list.pointers;
	return api_send(call, &response.base, e);
}

static int serve_stream_images(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *request, struct hw_err *e)
{
	const struct image_service *s = ctx;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s->store);
	const struct store_image *const *images, *one = NULL;
	size_t n;
	int r;

	r = apply_filter(snap, ((const Runtime__V1__StreamImagesRequest *)request)->filter, &one,
			 &images, &n, e);
	for (size_t i = 0; r == 0 && i < n; i += IMAGES_PER_MESSAGE) {
		Runtime__V1__StreamImagesResponse response =
			RUNTIME__V1__STREAM_IMAGES_RESPONSE__INIT;
		AUTO(image_list_done) struct image_list list = { 0 };

		make_list(images + i, n - i < IMAGES_PER_MESSAGE ? n - i : IMAGES_PER_MESSAGE,
			  &list);
		response.n_images = list.n;
		response.images = list.pointers;
		r = api_send(call, &response.base, e);
	}
	return r;
}

/* ---- one image ---------------------------------------------------------------------- */

/* Formats the same JSON as containerd: {"chainID": ..., "imageSpec": configuration}. crictl prints
 * it. Return: 1, *ret_json is allocated; 0 if the image was removed meanwhile */
static int format_info(const struct image_service *s, const char *id, char **ret_json,
		       struct hw_err *e)
{
	AUTO(value_free) struct value *object = value_new_object(), *config = NULL;
	autofree struct store_layer *layers = NULL;
	AUTO(buf_done) struct buf bytes = { 0 };
	size_t n = 0;
	int r;

	r = store_image_read(s->store, id, NULL, &bytes, e);
	if (r == 1)
		r = store_image_layers(s->store, id, &layers, &n, e);
	if (r == 1)
		r = value_parse(bytes.data, bytes.len, &config, e) < 0 ? e->code : 1;
	if (r <= 0)
		return r;
	value_set(object, "chainID", value_new_string(n ? layers[n - 1].chain_id : ""));
	value_set(object, "imageSpec", take_ptr(config));
	*ret_json = value_format(object, 0);
	return 1;
}

static int serve_image_status(const void *ctx, struct rpc_call *call,
			      const ProtobufCMessage *message, struct hw_err *e)
{
	const struct image_service *s = ctx;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s->store);
	const Runtime__V1__ImageStatusRequest *request =
		(const Runtime__V1__ImageStatusRequest *)message;
	Runtime__V1__ImageStatusResponse response = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INIT;
	Runtime__V1__ImageStatusResponse__InfoEntry entry =
		RUNTIME__V1__IMAGE_STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__ImageStatusResponse__InfoEntry *entries[] = { &entry };
	const struct store_image *image = NULL;
	struct image_message found;
	autofree char *info = NULL;
	char key[] = "info";
	int r;

	r = check_image_name(request->image, e);
	if (r == 0)
		r = store_snapshot_find(snap, image_name(request->image), &image, e);
	if (image) {
		set_image(&found, image);
		response.image = &found.image;
		r = request->verbose ? format_info(s, image->id, &info, e) : 0;
	}
	if (r < 0)
		return r;
	if (info) {
		entry.key = key;
		entry.value = info;
		response.n_info = 1;
		response.info = entries;
	}
	return api_send(call, &response.base, e);
}

static int serve_remove_image(const void *ctx, struct rpc_call *call,
			      const ProtobufCMessage *message, struct hw_err *e)
{
	const struct image_service *s = ctx;
	const Runtime__V1__ImageSpec *spec =
		((const Runtime__V1__RemoveImageRequest *)message)->image;
	Runtime__V1__RemoveImageResponse response = RUNTIME__V1__REMOVE_IMAGE_RESPONSE__INIT;
	int r;

	r = check_image_name(spec, e);
	if (r == 0)
		r = store_image_remove(s->store, image_name(spec), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

/* ---- file system -------------------------------------------------------------------- */

/* A FilesystemUsage, and the messages that it points to. */
struct usage_message {
	Runtime__V1__FilesystemUsage usage;
	Runtime__V1__FilesystemIdentifier id;
	Runtime__V1__UInt64Value bytes, inodes;
};

/* Return: m->usage */
static Runtime__V1__FilesystemUsage *set_usage(struct usage_message *m, const struct store *store,
					       int64_t time, uint64_t bytes, uint64_t inodes)
{
	runtime__v1__filesystem_usage__init(&m->usage);
	runtime__v1__filesystem_identifier__init(&m->id);
	runtime__v1__uint64_value__init(&m->bytes);
	runtime__v1__uint64_value__init(&m->inodes);
	m->id.mountpoint = (char *)store_root(store);
	m->bytes.value = bytes;
	m->inodes.value = inodes;
	m->usage.timestamp = time;
	m->usage.fs_id = &m->id;
	m->usage.used_bytes = &m->bytes;
	m->usage.inodes_used = &m->inodes;
	return &m->usage;
}

static int serve_image_fs_info(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *request, struct hw_err *e)
{
	const struct image_service *s = ctx;
	Runtime__V1__ImageFsInfoResponse response = RUNTIME__V1__IMAGE_FS_INFO_RESPONSE__INIT;
	Runtime__V1__FilesystemUsage *image_list[1], *container_list[1];
	struct usage_message images, containers;
	struct stats_layer written;
	struct store_usage used;

	(void)request;
	store_usage(s->store, &used);
	pods_layers(s->pods, &written);
	image_list[0] = set_usage(&images, s->store, time_real(), (uint64_t)used.bytes,
				  (uint64_t)used.inodes);
	container_list[0] =
		set_usage(&containers, s->store, written.time, written.bytes, written.inodes);
	if (!written.time) { /* not counted yet */
		container_list[0]->timestamp = time_real();
		container_list[0]->used_bytes = container_list[0]->inodes_used = NULL;
	}
	response.n_image_filesystems = response.n_container_filesystems = 1;
	response.image_filesystems = image_list;
	response.container_filesystems = container_list;
	return api_send(call, &response.base, e);
}

const struct service_method image_methods[] = {
	{ "ListImages", serve_list_images, 0 },
	{ "StreamImages", serve_stream_images, RPC_LONG | RPC_STREAM_OUT },
	{ "ImageStatus", serve_image_status, 0 },
	{ "PullImage", serve_pull_image, RPC_LONG },
	{ "RemoveImage", serve_remove_image, RPC_LONG },
	{ "ImageFsInfo", serve_image_fs_info, RPC_INSTANT },
	{ 0 },
};
