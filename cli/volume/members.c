/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume add-server and remove-server.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/volume/volume.h"

/* ---- add-server -------------------------------------------------------------------------*/

static const struct cli_option add_server_options[] = {
	VOLUME_NAME,
	{ "new-servers", "ADDR:PORT[,...]", "memory servers that it gets", cli_set_text,
	  volume_wanted.new_servers, .max = sizeof(volume_wanted.new_servers),
	  .is_required = true, .place = CLI_OPTION_OR_WORD, .argument = CLI_ARGUMENT_ADDRESS },
	VOLUME_POOL("servers that have it; more than half of them must be there"),
	VOLUME_REACH,
};

struct members {
	struct rbx_volume_member list[64]; /* a volume has no more */
	int count; /* or -errno */
};

static void members_ask(struct rbx_context *ctx, struct members *members)
{
	members->count = rbx_volume_members_list(ctx, volume_wanted.pool, volume_wanted.name,
						 members->list, 64);
}

static bool are_in(const struct members *members, uint64_t incarnation)
{
	for (int i = 0; i < members->count; i++)
		if (members->list[i].incarnation == incarnation)
			return !members->list[i].is_out;
	return false;
}

/* By the list of servers they have lost their memory. But the list may be wrong. */
static void left_out_tell(const struct members *before, const struct members *after)
{
	for (int i = 0; i < before->count && after->count > 0; i++) {
		const struct rbx_volume_member *member = &before->list[i];

		if (!member->is_out && !are_in(after, member->incarnation))
			fprintf(stderr, "rdmabox volume add-server: server %016" PRIx64
				" is at none of the addresses that were given, and is taken from the volume; if it is well, add it again by its address\n",
				member->incarnation);
	}
}

static int add_server_call(struct rbx_context *ctx)
{
	struct members before, after;
	int err;

	members_ask(ctx, &before);
	err = rbx_volume_members_add(ctx, volume_wanted.pool, volume_wanted.name,
				     volume_wanted.new_servers);
	if (err)
		return err;
	members_ask(ctx, &after);
	left_out_tell(&before, &after);
	return 0;
}

static int add_server(int argc, char **argv)
{
	return volume_call(&volume_add_server_command, argc, argv, add_server_call, "");
}

const struct cli_command volume_add_server_command = {
	.name = "volume add-server",
	.purpose = "give a volume more servers, which no program has open",
	.notes = "It gets all of them or none. The next program that opens it borrows from them, and makes\n"
		 "replicas there that are missing. If the command was interrupted, repeat it. If SERVERS\n"
		 "name new servers in place of some that it has, those have lost their memory, and are\n"
		 "taken from the volume, which is said: do not leave one out that is well.",
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
	VOLUME_POOL("servers that have it; more than half of them must be there"),
	VOLUME_REACH,
};

static int remove_server_call(struct rbx_context *ctx)
{
	return rbx_volume_members_remove(ctx, volume_wanted.pool, volume_wanted.name,
					 volume_wanted.old_server);
}

/* On a terminal, one line that is written over; left: 0 takes it away. */
static void show_left(int left)
{
	if (!isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	if (left > 0)
		fprintf(stderr, "moving: %d slab%s left", left, left > 1 ? "s" : "");
	fflush(stderr);
}

/* Until nothing is there. Returns 0 or an exit code after saying why. */
static int move_all(struct rbx_volume *volume)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	int left;

	while ((left = rbx_volume_move_off(volume, volume_wanted.old_server)) > 0 &&
	       !cli_interrupted()) {
		show_left(left);
		nanosleep(&pause, NULL);
	}
	show_left(0);
	if (left < 0)
		return cli_fail(&volume_remove_server_command, "%s", rbx_last_error());
	if (!left)
		return 0;
	cli_fail(&volume_remove_server_command,
		 "interrupted: %d slab%s still at server %s; repeat the command to go on", left,
		 left > 1 ? "s are" : " is", volume_wanted.old_server);
	return CLI_EXIT_SIGNAL + cli_interrupted();
}

static int move(struct rbx_context *ctx)
{
	struct rbx_volume *volume;
	int rc;

	rc = volume_open(&volume_remove_server_command, ctx, &volume, volume_event_show, NULL);
	if (rc)
		return rc;
	rc = move_all(volume);
	rbx_volume_close(volume);
	return rc;
}

/* A server that is out, or has nothing, goes at once. */
static int remove_server_from(struct rbx_context *ctx)
{
	int rc, err = remove_server_call(ctx);

	if (err == -EADDRINUSE) {
		rc = move(ctx);
		if (rc)
			return rc;
		err = remove_server_call(ctx);
	}
	return err ? cli_fail(&volume_remove_server_command, "%s", rbx_last_error()) : 0;
}

static int remove_server(int argc, char **argv)
{
	struct rbx_context *ctx;
	int rc = 0;

	ctx = volume_begin(&volume_remove_server_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	cli_interrupt_catch(true);
	rc = remove_server_from(ctx);
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_remove_server_command = {
	.name = "volume remove-server",
	.purpose = "take a server from a volume, which no program has open",
	.notes = "If it is in use, what it has of the volume is moved to the other servers at first: they\n"
		 "must be enough for all replicas, and have room. That needs a volume with replicas, and\n"
		 "all servers have to be there. Ctrl-C ends the command in order, and the volume is whole\n"
		 "at any time: repeat the command to go on. What a server has that is out does not\n"
		 "count, and it gives that up if it is there.",
	CLI_OPTIONS(remove_server_options),
	.run = remove_server,
	.prepare = volume_prepare,
};
