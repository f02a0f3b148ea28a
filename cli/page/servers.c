/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox page add-server: one more server for a volume that is attached.
 */
#include <errno.h>
#include <string.h>

#include "cli/page/page.h"

static char name[PAGE_NAME_MAX] = "page";
static char server[PAGE_VALUE_MAX];

static int page_add_server(int argc, char **argv);

static const struct cli_option add_server_options[] = {
	{ "server", "IP:PORT", "the memory server, by numbers and not by names", cli_set_text,
	  server, .max = sizeof(server), .is_required = true, .place = CLI_OPTION_OR_WORD,
	  .argument = CLI_ARGUMENT_ADDRESS,
	  .details = "It is reached through an RDMA device, and has the secret of the others." },
	{ "name", "NAME", "name of the volume", cli_set_text, name, .max = sizeof(name) },
};

const struct cli_command page_add_server_command = {
	.name = "page add-server",
	.purpose = "give a volume one more server while it is attached",
	.notes = "Copies that were lost are made anew there. A server that was lost and serves again is\n"
		 "added in the same way. A named volume has it from then on.",
	CLI_OPTIONS(add_server_options),
	.run = page_add_server,
};

const char *page_server_sentence(int err)
{
	switch (err) {
	case -ENXIO:
		return "the volume is not attached";
	case -EBUSY:
		return "the volume is being attached, detached or changed; try again";
	case -EINVAL:
		return "it is no address, one of the servers already, or lends slabs of another size; "
		       "the kernel's log (dmesg) says which";
	case -EEXIST:
		return "it is one of the servers, and has not been given up yet; try again";
	case -EAGAIN:
		return "it cannot be taken just now; try again";
	case -EOPNOTSUPP:
		return "a named volume with one replica gets servers when it is not attached: rdmabox "
		       "volume add-server does that";
	case -EHOSTUNREACH:
	case -ECONNREFUSED:
	case -ETIMEDOUT:
		return "it does not answer; see that it serves with --fabric verbs";
	case -ENODEV:
		return "it is not reached through an RDMA device";
	case -EXDEV:
		return "it is reached through one RDMA device more than a volume can use";
	case -EACCES:
		return "it has another secret than the others";
	case -EPERM:
		return "it is another machine, and the volume has no secret";
	case -ENOSPC:
	case -EDQUOT:
		return "it has no memory to lend, or the volume has as many servers as can be";
	default:
		return strerror(-err);
	}
}

static int page_add_server(int argc, char **argv)
{
	const struct cli_command *command = &page_add_server_command;
	int rc = cli_parse(command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (!*server)
		return cli_fail(command, "no server; add --server IP:PORT");
	rc = page_find(command, name);
	if (rc)
		return rc;
	rc = page_write(name, "add_server", server, strlen(server));
	return rc ? cli_fail(command, "cannot add %s: %s", server, page_server_sentence(rc)) : CLI_EXIT_OK;
}
