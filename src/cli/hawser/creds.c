/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/creds.c - name and password for a registry
 *
 * What:  --creds USER:PASSWORD; --creds USER with the password from standard input
 *        or asked for on the terminal.
 * Rules: a secret is wiped before its memory is given back, and is part of no message.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/terminal.h"
#include "cli/text.h"

#define SECRET_MAX (64 << 10) /* tokens are passwords, too */

static void wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void creds_done(struct creds *creds)
{
	wipe(creds->username);
	wipe(creds->password);
	*creds = (struct creds){ 0 };
}

/* All of it, without the newline that echo adds. */
static int read_stdin(char **ret, struct hw_err *e)
{
	struct buf b = { 0 };
	int r = file_read_fd(STDIN_FILENO, SECRET_MAX, &b, e);

	if (r < 0)
		return err_ctx(e, "read the password from standard input");
	*ret = buf_take(&b);
	(*ret)[strcspn(*ret, "\r\n")] = '\0';
	if (**ret)
		return 0;
	wipe(take_ptr(*ret));
	return err_text(e, -EINVAL, "--password-stdin: there is nothing on standard input");
}

static int ask(const char *username, char **ret, struct hw_err *e)
{
	autofree char *user = text_clean(username);
	autofree char *question = str_printf("password of %s: ", user);

	if (terminal_read_secret(question, ret, e) < 0)
		return err_ctx(e,
			       "--creds %s has no password (--password-stdin reads it from "
			       "standard input)",
			       user);
	return 0;
}

/**
 * creds_get() - what the options say, and what they leave open
 * @cli: the program
 * @ret: the credentials; members are NULL if there are none
 * @e:   the error
 */
int creds_get(const struct cli *cli, struct creds *ret, struct hw_err *e)
{
	const char *colon = cli->creds ? strchr(cli->creds, ':') : NULL;
	int r = 0;

	*ret = (struct creds){ 0 };
	if (!cli->creds && cli->password_stdin)
		return err_text(e, -EINVAL, "--password-stdin goes with --creds USER");
	if (!cli->creds)
		return 0;
	if (colon == cli->creds || !*cli->creds)
		return err_text(e, -EINVAL, "--creds wants USER or USER:PASSWORD");
	if (colon && cli->password_stdin)
		return err_text(e, -EINVAL, "--password-stdin, but --creds has a password, too");
	ret->username =
		colon ? str_ncopy(cli->creds, (size_t)(colon - cli->creds)) : str_copy(cli->creds);
	if (colon)
		ret->password = str_copy(colon + 1);
	else if (cli->password_stdin)
		r = read_stdin(&ret->password, e);
	else
		r = ask(ret->username, &ret->password, e);
	if (r < 0)
		creds_done(ret);
	return r;
}
