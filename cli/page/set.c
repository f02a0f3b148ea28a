/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox page set: options of a volume that can be changed while it is attached.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/page/page.h"
#include "cli/reach.h"

static char name[PAGE_NAME_MAX] = "page";
static char pool[PAGE_VALUE_MAX];
static char secret_file[PATH_MAX];
static uint32_t peer_timeout_ms;

static int page_set(int argc, char **argv);

static const struct cli_option set_options[] = {
	{ "name", "NAME", "name of the volume", cli_set_text, name, .max = sizeof(name) },
	{ "pool", "POOL", "servers that are new in this pool are added", cli_set_text, pool,
	  .max = sizeof(pool), .argument = CLI_ARGUMENT_ADDRESS,
	  .details = CLI_POOL_DETAILS " Those of the volume that are not in it stay." },
	{ "peer-timeout", "MS", "time until a silent server is given up", cli_set_number,
	  &peer_timeout_ms, .min = 400, .max = 600000, .unit = "ms" },
	{ "secret-file", "FILE", "file with the secret for servers that are connected from now on",
	  cli_set_text, secret_file, .max = sizeof(secret_file), .argument = CLI_ARGUMENT_FILE },
};

const struct cli_command page_set_command = {
	.name = "page set",
	.purpose = "change options of a volume while it is attached",
	.notes = "Requests go on meanwhile. What was changed before a failure stays changed.",
	CLI_OPTIONS(set_options),
	.run = page_set,
};

static const char *sentence(int err)
{
	switch (err) {
	case -EBUSY:
		return "the volume is being attached, detached or changed; try again";
	case -EINVAL:
		return "the kernel does not take that; its log (dmesg) says why";
	default:
		return strerror(-err);
	}
}

static int timeout_write(void)
{
	char text[16];
	int err;

	snprintf(text, sizeof(text), "%" PRIu32, peer_timeout_ms);
	err = page_write(name, "peer_timeout_ms", text, strlen(text));
	if (err)
		cli_fail(&page_set_command, "cannot change the peer timeout: %s", sentence(err));
	return err;
}

static int servers_write(void)
{
	int err = page_write(name, "servers", pool, strlen(pool));

	if (err)
		cli_fail(&page_set_command, "cannot add servers: %s",
			 err == -EBUSY ? sentence(err) : page_server_sentence(err));
	return err;
}

/* The secret first: the servers that are added may need it. */
static int all_write(void)
{
	int err = 0;

	if (*secret_file)
		err = page_secret_write(&page_set_command, name, secret_file);
	if (!err && peer_timeout_ms)
		err = timeout_write();
	if (!err && *pool)
		err = servers_write();
	return err ? CLI_EXIT_USAGE : CLI_EXIT_OK;
}

static int page_set(int argc, char **argv)
{
	const struct cli_command *command = &page_set_command;
	int rc = cli_parse(command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (!*pool && !*secret_file && !peer_timeout_ms)
		return cli_fail(command, "nothing to change; add --pool, --peer-timeout or "
					 "--secret-file");
	if (*pool)
		rc = page_pool_resolve(command, pool);
	if (!rc)
		rc = page_find(command, name);
	return rc ? rc : all_write();
}
