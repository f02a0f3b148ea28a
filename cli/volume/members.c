/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume add-server and remove-server.
 */
#include "cli/volume/volume.h"

/* ---- add-server -------------------------------------------------------------------------*/

static const struct cli_option add_server_options[] = {
	VOLUME_NAME,
	{ "new-servers", "ADDR:PORT[,...]", "memory servers that it gets", cli_set_text,
	  volume_wanted.new_servers, .max = sizeof(volume_wanted.new_servers),
	  .is_required = true, .place = CLI_OPTION_OR_WORD, .argument = CLI_ARGUMENT_ADDRESS },
	VOLUME_SERVERS("memory servers that have it; more than half of them must be there"),
	VOLUME_REACH,
};

static int add_server_call(struct rbx_context *ctx)
{
	return rbx_volume_members_add(ctx, volume_wanted.servers, volume_wanted.name,
				      volume_wanted.new_servers);
}

static int add_server(int argc, char **argv)
{
	return volume_call(&volume_add_server_command, argc, argv, add_server_call, "");
}

const struct cli_command volume_add_server_command = {
	.name = "volume add-server",
	.purpose = "give a volume more servers, which no program has open",
	.notes = "It gets all of them or none. The next program that opens it borrows from them, and makes\n"
		 "replicas there that are missing. If the command was interrupted, repeat it.",
	CLI_OPTIONS(add_server_options),
	.run = add_server,
	.prepare = volume_prepare,
};

/* ---- remove-server ----------------------------------------------------------------------*/

static const struct cli_option remove_server_options[] = {
	VOLUME_NAME,
	{ "old-server", "SERVER", "its incarnation; or ADDR:PORT, if it is there", cli_set_text,
	  volume_wanted.old_server, .max = sizeof(volume_wanted.old_server), .is_required = true,
	  .place = CLI_OPTION_OR_WORD,
	  .details = "`rdmabox volume show` prints the incarnations of the servers, 16 digits each." },
	VOLUME_SERVERS("memory servers that have it; more than half of them must be there"),
	VOLUME_REACH,
};

static int remove_server_call(struct rbx_context *ctx)
{
	return rbx_volume_members_remove(ctx, volume_wanted.servers, volume_wanted.name,
					 volume_wanted.old_server);
}

static int remove_server(int argc, char **argv)
{
	return volume_call(&volume_remove_server_command, argc, argv, remove_server_call, "");
}

const struct cli_command volume_remove_server_command = {
	.name = "volume remove-server",
	.purpose = "take a server that is out from a volume, which no program has open",
	.notes = "What it has of the volume does not count, and it gives that up if it is there. A server\n"
		 "that is not out stays: what it has is not moved.",
	CLI_OPTIONS(remove_server_options),
	.run = remove_server,
	.prepare = volume_prepare,
};
