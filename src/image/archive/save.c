/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/save.c - save images to an archive
 *
 *	oci-layout
 *	blobs/sha256/HEX     layers, each once; configurations; manifests
 *	index.json           OCI: manifests and names
 *	manifest.json        docker load: configurations, layers and names
 *
 * How:   hawser-layer outputs the blob of a layer and checks it against the digests
 *        of the recipe. Its message, which comes after all bytes, tells whether they
 *        were correct. So a save that fails may already have written wrong bytes.
 */
#include "image/archive/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json/value.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "image/protocol/job.h"
#include "image/reference.h"

#define OCI	   "application/vnd.oci.image."
#define LAYER_TYPE OCI "layer.v1.tar"
#define BLOCK	   512 /* block size of a tar archive */
#define CHUNK	   (256 << 10)

/* The blob of a layer in the archive: as received if it was kept, else uncompressed. */
struct layer_blob {
	const struct store_layer *layer; /* borrowed, and held by the caller */
	const char *digest;		 /* borrowed from the layer */
	int64_t size;
	const char *media_type; /* OCI media type */
};

struct saver {
	struct store *store;
	const struct save_options *how;
	struct map *written; /* names of the blobs that are already in the archive */
	struct value *index, *docker;
};

static void saver_done(struct saver *s)
{
	map_free(s->written);
	value_free(s->index);
	value_free(s->docker);
}

AUTO_VALUE_DEFINE(saver_done, struct saver);

/* ---- output of hawser-layer ------------------------------------------------ */

/* The tar header already contains the size, so the output must have exactly @size bytes. */
static int size_mismatch(int64_t got, int64_t size, struct hw_err *e)
{
	return err_text(e, -EBADMSG, "size mismatch: got %lld bytes, want %lld", (long long)got,
			(long long)size);
}

/* Copies the output of hawser-layer, at most @size bytes, up to EOF. */
static int copy_output(struct helper *helper, int from, int64_t size,
		       const struct save_options *how, int64_t *ret_got, struct hw_err *e)
{
	autofree char *chunk = mem_new(CHUNK);
	int64_t got = 0;
	ssize_t n;
	int r;

	for (;;) {
		r = helper_wait(helper, from, how->cancel_fd, how->deadline, e);
		if (r < 0)
			return r;
		n = read(from, chunk, CHUNK);
		if (n < 0)
			return err_set(e, -errno, "read from hawser-layer");
		if (n == 0)
			break;
		got += n;
		if (got > size)
			return size_mismatch(got, size, e);
		r = how->write(how->ctx, chunk, (size_t)n, e);
		if (r < 0)
			return r;
	}
	*ret_got = got;
	return 0;
}

static int run_hawser_layer(const char *const *argv, int64_t size, const struct save_options *how,
			    struct hw_err *e)
{
	const struct job_answer answer = { .name = "hawser-layer",
					   .type = JOB_DONE,
					   .failed = -EBADMSG,
					   .cancel_fd = how->cancel_fd,
					   .deadline = how->deadline };
	AUTO(helper_free) struct helper *helper = NULL;
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	autoclose int from = -1, out = -1;
	int64_t got = 0;
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(e, -errno, "create a pipe");
	from = pair[0];
	out = pair[1];
	r = helper_start(&(struct helper_start){ .argv = argv, .keep = &out, .n_keep = 1 }, &helper,
			 e);
	if (r < 0)
		return r;
	mem_close_fd(&out);
	out = -1;
	r = copy_output(helper, from, size, how, &got, e);
	if (r < 0)
		return r;
	r = job_receive_answer(helper, &answer, &m, e);
	if (r < 0)
		return r;
	return got == size ? 0 : size_mismatch(got, size, e);
}

/* ---- blobs of layers ------------------------------------------------------- */

static int choose_blob(struct store *s, const struct store_layer *layer,
		       struct layer_blob *ret_blob, struct hw_err *e)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	autoclose int dir = -1, fd = -1;
	uint8_t first[sizeof(zstd)] = { 0 };

	if (!layer->blob_kept && !layer->rebuildable)
		return err_text(e, -EOPNOTSUPP, "layer %s: cannot be rebuilt from its files",
				layer->diff_id);
	if (!layer->blob_kept) {
		*ret_blob =
			(struct layer_blob){ layer, layer->diff_id, layer->archive, LAYER_TYPE };
		return 0;
	}
	/* the database does not record the compression: detect it from the first bytes */
	dir = store_layer_open(s, layer->chain_id, e);
	if (dir < 0)
		return err_ctx(e, "layer %s", layer->diff_id);
	fd = openat(dir, "blob", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || pread(fd, first, sizeof(first), 0) < 0)
		return err_set(e, -errno, "layer %s: read the stored blob", layer->diff_id);
	*ret_blob = (struct layer_blob){ layer, layer->blob, layer->blob_size, LAYER_TYPE };
	if (memcmp(first, gzip, sizeof(gzip)) == 0)
		ret_blob->media_type = LAYER_TYPE "+gzip";
	else if (memcmp(first, zstd, sizeof(zstd)) == 0)
		ret_blob->media_type = LAYER_TYPE "+zstd";
	return 0;
}

/* ---- tar ------------------------------------------------------------------- */

/* POSIX ustar header. A size of more than eleven octal digits is in binary, a GNU extension. */
struct ustar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[8], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

_Static_assert(sizeof(struct ustar_header) == BLOCK, "a header is one block");

static int write_header(struct saver *s, const char *name, int64_t size, struct hw_err *e)
{
	struct ustar_header h = { .mode = "0000644", .uid = "0000000", .gid = "0000000" };
	const unsigned char *bytes = (const unsigned char *)&h;
	unsigned sum = 0;

	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	if (size < INT64_C(1) << 33) {
		snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)size);
	} else {
		h.size[0] = (char)0x80;
		for (size_t i = sizeof(h.size) - 1; i > 0; i--, size >>= 8)
			h.size[i] = (char)(size & 0xff);
	}
	memset(h.mtime, '0', sizeof(h.mtime) - 1);
	memcpy(h.magic, "ustar\00000", sizeof(h.magic));
	h.type = '0';
	memset(h.sum, ' ', sizeof(h.sum)); /* POSIX: the checksum counts its own field as spaces */
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	snprintf(h.sum, sizeof(h.sum) - 1, "%06o", sum);
	return s->how->write(s->how->ctx, &h, sizeof(h), e);
}

static int write_padding(struct saver *s, int64_t size, struct hw_err *e)
{
	static const char zeros[BLOCK];
	size_t rest = (size_t)(size % BLOCK);

	return rest ? s->how->write(s->how->ctx, zeros, BLOCK - rest, e) : 0;
}

static int write_file(struct saver *s, const char *name, const char *data, size_t len,
		      struct hw_err *e)
{
	int r;

	r = write_header(s, name, (int64_t)len, e);
	if (r < 0)
		return r;
	if (len > 0)
		r = s->how->write(s->how->ctx, data, len, e);
	return r < 0 ? r : write_padding(s, (int64_t)len, e);
}

static int write_json(struct saver *s, const char *name, const struct value *v, struct hw_err *e)
{
	autofree char *text = value_format(v, 0);

	return write_file(s, name, text, strlen(text), e);
}

/* ---- blobs ----------------------------------------------------------------- */

static char *blob_name(const char *digest)
{
	return str_printf("blobs/sha256/%s", digest + strlen("sha256:"));
}

/* Return: false if the blob is already in the archive */
static bool mark_written(struct saver *s, const char *name)
{
	if (map_find(s->written, name))
		return false;
	map_set(s->written, name, s);
	return true;
}

static int write_layer(struct saver *s, const struct layer_blob *blob, struct hw_err *e)
{
	const struct store_layer *layer = blob->layer;
	autofree char *name = blob_name(blob->digest);
	autofree char *dir = str_printf("%s/layers/%s", store_root(s->store),
					layer->chain_id + strlen("sha256:"));
	const char *const rebuild[] = { s->how->program, "archive", dir, NULL };
	const char *const stored[] = { s->how->program, "blob", dir, layer->blob, NULL };
	int r;

	if (!mark_written(s, name))
		return 0;
	r = write_header(s, name, blob->size, e);
	if (r < 0)
		return r;
	r = run_hawser_layer(layer->blob_kept ? stored : rebuild, blob->size, s->how, e);
	if (r < 0)
		return err_ctx(e, "layer %s", layer->diff_id);
	return write_padding(s, blob->size, e);
}

static int write_blob(struct saver *s, const char *digest, const char *data, size_t len,
		      struct hw_err *e)
{
	autofree char *name = blob_name(digest);

	return mark_written(s, name) ? write_file(s, name, data, len, e) : 0;
}

static struct value *make_descriptor(const char *media, const char *digest, int64_t size)
{
	struct value *v = value_new_object();

	value_set(v, "mediaType", value_new_string(media));
	value_set(v, "digest", value_new_string(digest));
	value_set(v, "size", value_new_int(size));
	return v;
}

/* ---- documents ------------------------------------------------------------- */

static char *make_manifest(const char *id, size_t config_len, const struct layer_blob *layers,
			   size_t n)
{
	AUTO(value_free) struct value *manifest = value_new_object();
	struct value *list = value_new_array();

	for (size_t i = 0; i < n; i++)
		value_append(list, make_descriptor(layers[i].media_type, layers[i].digest,
						   layers[i].size));
	value_set(manifest, "schemaVersion", value_new_int(2));
	value_set(manifest, "mediaType", value_new_string(OCI "manifest.v1+json"));
	value_set(manifest, "config",
		  make_descriptor(OCI "config.v1+json", id, (int64_t)config_len));
	value_set(manifest, "layers", list);
	return value_format(manifest, 0);
}

/* Adds an entry for each name of the image, or one entry without a name. */
static void add_to_index(struct saver *s, const struct store_image *image, const char *digest,
			 size_t size)
{
	size_t n = image->tags.n ? image->tags.n : 1;

	for (size_t i = 0; i < n; i++) {
		AUTO(reference_done) struct reference ref = { 0 };
		struct value *entry =
			make_descriptor(OCI "manifest.v1+json", digest, (int64_t)size);
		struct value *names;
		struct hw_err ignored;

		value_append(s->index, entry);
		if (image->tags.n == 0)
			continue;
		/* containerd and OCI tools read the name from these annotations */
		names = value_new_object();
		value_set(names, "io.containerd.image.name", value_new_string(image->tags.v[i]));
		if (reference_parse(image->tags.v[i], &ref, &ignored) == 0 && ref.tag)
			value_set(names, "org.opencontainers.image.ref.name",
				  value_new_string(ref.tag));
		value_set(entry, "annotations", names);
	}
}

static void add_to_docker_manifest(struct saver *s, const struct store_image *image,
				   const struct layer_blob *layers, size_t n)
{
	autofree char *config = blob_name(image->id);
	struct value *entry = value_new_object();
	struct value *tags = value_new_array(), *files = value_new_array();

	for (size_t i = 0; i < image->tags.n; i++)
		value_append(tags, value_new_string(image->tags.v[i]));
	for (size_t i = 0; i < n; i++) {
		autofree char *name = blob_name(layers[i].digest);

		value_append(files, value_new_string(name));
	}
	value_set(entry, "Config", value_new_string(config));
	value_set(entry, "RepoTags", tags);
	value_set(entry, "Layers", files);
	value_append(s->docker, entry);
}

/* ---- images ---------------------------------------------------------------- */

static int save_image(struct saver *s, const struct store_image *image, struct hw_err *e)
{
	AUTO(store_hold_free) struct store_hold *hold = store_hold_new(s->store);
	AUTO(buf_done) struct buf config = { 0 };
	autofree struct store_layer *layers = NULL;
	autofree struct layer_blob *blobs = NULL;
	autofree char *manifest = NULL;
	char digest[DIGEST_TEXT];
	size_t n = 0;
	int r;

	r = store_image_layers(s->store, image->id, &layers, &n, e);
	for (size_t i = 0; r == 1 && i < n; i++)
		r = store_hold_layer(hold, layers[i].chain_id, e);
	if (r <= 0)
		return r < 0 ? r
			     : err_text(e, -ENODATA,
					"image was removed meanwhile, or a layer was lost");
	blobs = mem_new((n + 1) * sizeof(*blobs));
	for (size_t i = 0; i < n; i++) {
		r = choose_blob(s->store, &layers[i], &blobs[i], e);
		if (r < 0)
			return r;
	}
	r = store_image_read(s->store, image->id, NULL, &config, e);
	if (r <= 0)
		return r < 0 ? r : err_text(e, -ENODATA, "image was removed meanwhile");
	for (size_t i = 0; i < n; i++) {
		r = write_layer(s, &blobs[i], e);
		if (r < 0)
			return r;
	}
	r = write_blob(s, image->id, config.data, config.len, e);
	if (r < 0)
		return r;
	manifest = make_manifest(image->id, config.len, blobs, n);
	digest_of(manifest, strlen(manifest), digest);
	r = write_blob(s, digest, manifest, strlen(manifest), e);
	if (r < 0)
		return r;
	add_to_index(s, image, digest, strlen(manifest));
	add_to_docker_manifest(s, image, blobs, n);
	return 0;
}

static int find_images(const struct store_snapshot *snap, const char *const *names, size_t n,
		       const struct store_image **images, struct hw_err *e)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		r = store_snapshot_find(snap, names[i], &images[i], e);
		if (r < 0)
			return r;
		if (r == 0)
			return err_text(e, -ENODATA, "image \"%.256s\" not found", names[i]);
	}
	return 0;
}

int save_images(struct store *s, const char *const *names, size_t n, const struct save_options *how,
		struct hw_err *e)
{
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	static const char end_of_archive[2 * BLOCK];
	AUTO(saver_done)
	struct saver saver = {
		.store = s,
		.how = how,
		.written = map_new(NULL),
		.index = value_new_array(),
		.docker = value_new_array(),
	};
	AUTO(value_free) struct value *index = value_new_object();
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s);
	autofree const struct store_image **images =
		mem_new((n + 1) * sizeof(struct store_image *));
	int r;

	r = find_images(snap, names, n, images, e);
	if (r < 0)
		return r;
	r = write_file(&saver, "oci-layout", layout, strlen(layout), e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (save_image(&saver, images[i], e) < 0)
			return err_ctx(e, "save image %s", images[i]->id);
	value_set(index, "schemaVersion", value_new_int(2));
	value_set(index, "mediaType", value_new_string(OCI "index.v1+json"));
	value_set(index, "manifests", value_ref(saver.index));
	r = write_json(&saver, "index.json", index, e);
	if (r < 0)
		return r;
	r = write_json(&saver, "manifest.json", saver.docker, e);
	if (r < 0)
		return r;
	return how->write(how->ctx, end_of_archive, sizeof(end_of_archive), e);
}
