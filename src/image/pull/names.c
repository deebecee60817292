/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/names.c - the names that an image gets in the store
 */
#include "image/pull/names.h"

#include <errno.h>

#include "base/str.h"
#include "image/reference.h"

#define NAMES_MAX 256 /* of one image */

/**
 * names_pulled() - the names of an image that was pulled
 *
 * By digest it has no tag, even if one was written there too: nobody has asked what
 * it stands for.
 *
 * Return: 0; -EBADMSG: the reference has another digest
 */
int names_pulled(const char *reference, const char *digest, struct hw_strings *names,
		 struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL, *by_digest = NULL, *by_tag = NULL;
	int r = reference_parse(reference, &ref, e);

	if (r < 0)
		return r;
	if (ref.digest && !str_equal(ref.digest, digest))
		return err_text(e, -EBADMSG, "the reference does not stand for %.128s", digest);
	name = reference_name(&ref);
	by_digest = str_printf("%s@%s", name, digest);
	strings_add(names, by_digest);
	if (ref.digest)
		return 0;
	by_tag = str_printf("%s:%s", name, ref.tag);
	strings_add(names, by_tag);
	return 0;
}

/** names_add() - one more, made complete */
int names_add(struct hw_strings *names, const char *text, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL;
	int r = reference_parse(text, &ref, e);

	if (r < 0)
		return r;
	if (ref.digest)
		return err_text(e, -EINVAL, "\"%.300s\": a digest is no name to be given", text);
	name = reference_format(&ref);
	if (!strings_has(names, name))
		strings_add(names, name);
	return 0;
}

/**
 * names_loaded() - the names of an image that an archive has
 *
 * Tags alone: what a registry would give for a digest, an archive does not say.
 *
 * Return: 0, or -EINVAL, -EFBIG
 */
int names_loaded(const struct hw_strings *written, struct hw_strings *names, struct hw_err *e)
{
	int r = 0;

	if (written->n > NAMES_MAX)
		return err_text(e, -EFBIG, "%zu names are more than %d", written->n, NAMES_MAX);
	for (size_t i = 0; r == 0 && i < written->n; i++)
		r = names_add(names, written->v[i], e);
	return r;
}
