/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume create, grow, rename and remove.
 */
#include <errno.h>

#include "cli/volume/volume.h"

int volume_call(const struct cli_command *command, int argc, char **argv,
		int (*call)(struct rbx_context *ctx), const char *if_busy)
{
	struct rbx_context *ctx;
	int err, rc = CLI_EXIT_OK;

	ctx = volume_begin(command, argc, argv, &rc);
	if (!ctx)
		return rc;
	err = call(ctx);
	if (err)
		rc = cli_fail(command, "%s%s", rbx_last_error(), (err == -EBUSY || err == -EHOSTUNREACH) && !volume_wanted.force ? if_busy : "");
	rbx_close(ctx);
	return rc;
}

/* ---- create ----------------------------------------------------------------------------*/

static const struct cli_option create_options[] = {
	VOLUME_NAME,
	{ "size", "SIZE", "bytes, a multiple of 4096", cli_set_size,
	  &volume_wanted.size_bytes, .min = 4096, .max = 1ull << 46, .is_required = true,
	  .details = "`rdmabox volume grow` makes it larger, nothing makes it smaller." },
	VOLUME_POOL("servers that will have it"),
	{ "replicas", "N", "servers that have each slab, 1 to 3", cli_set_number,
	  &volume_wanted.replicas, .min = 1, .max = 3, .preset = "1",
	  .details = "With more than one, the volume survives the loss of a server." },
	{ "keep", "TIME|ever", "how long it stays while no program has it open",
	  volume_set_keep, .field = &volume_wanted.keep_s, .words = "ever", .preset = "ever",
	  .details = "A number with `s`, `m`, `h` or `d`: seconds, minutes, hours or days." },
	{ "checksums", NULL, "keep a CRC32C of each 4 KiB page at the servers", cli_set_flag,
	  .field = &volume_wanted.checksums,
	  .details = "A page that is damaged at one server is read from another one, and written there "
		     "anew. Needs 2 replicas or more; programs then read and write multiples of 4096 "
		     "bytes. It takes 1 KiB for each MiB at each server, and in the program that has "
		     "the volume open." },
	{ "reserve", NULL, "borrow the memory of all slabs now, and keep it", cli_set_flag,
	  .field = &volume_wanted.reserve,
	  .details = "Then no write ends with ENOSPC. If the servers have not so much free, the volume "
		     "is not made. `rdmabox volume grow` reserves what is new, too." },
	VOLUME_OVERCOMMIT,
	VOLUME_REACH,
};

static void reserved(uint64_t done_bytes, uint64_t all_bytes, void *user)
{
	struct volume_progress *progress = user;

	progress->total_bytes = all_bytes;
	volume_progress_show(progress, done_bytes);
}

/* It may take a while: a server empties memory before it lends it. */
static int create_reserved(struct rbx_context *ctx, struct rbx_volume_create_options *options)
{
	struct volume_progress progress;
	int err;

	volume_progress_begin(&progress, "reserve", 0);
	options->reserve = 1;
	options->progress = reserved;
	options->user = &progress;
	err = rbx_volume_create(ctx, volume_wanted.pool, volume_wanted.name,
				volume_wanted.size_bytes, options);
	volume_progress_end(&progress, progress.total_bytes, !err);
	return err;
}

static int create_call(struct rbx_context *ctx)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.keep_s = volume_wanted.keep_s;
	options.replicas = volume_wanted.replicas;
	options.checksums = volume_wanted.checksums;
	options.overcommit = volume_wanted.overcommit;
	if (volume_wanted.reserve)
		return create_reserved(ctx, &options);
	return rbx_volume_create(ctx, volume_wanted.pool, volume_wanted.name,
				 volume_wanted.size_bytes, &options);
}

static int create(int argc, char **argv)
{
	return volume_call(&volume_create_command, argc, argv, create_call, "");
}

const struct cli_command volume_create_command = {
	.name = "volume create",
	.purpose = "make a volume, which reads as zeros",
	.notes = "It takes memory of its servers as it is written, a slab at a time, or all at once with\n"
		 "--reserve. Each slab is on as many servers as there are replicas. SIZE takes the suffixes\n"
		 "K, M, G and T (1024). A command that was interrupted has made the volume at all servers, or at none.",
	CLI_OPTIONS(create_options),
	.run = create,
	.prepare = volume_prepare,
};

/* ---- grow ------------------------------------------------------------------------------*/

static const struct cli_option grow_options[] = {
	VOLUME_NAME,
	{ "size", "SIZE", "bytes that it will have, a multiple of 4096", cli_set_size,
	  &volume_wanted.size_bytes, .min = 4096, .max = 1ull << 46, .is_required = true },
	VOLUME_POOL("servers that have it; more than half of them must be there"),
	VOLUME_OVERCOMMIT,
	VOLUME_REACH,
};

static int grow_call(struct rbx_context *ctx)
{
	int (*grow)(struct rbx_context *ctx, const char *servers, const char *name,
		    uint64_t size) =
		volume_wanted.overcommit ? rbx_volume_grow_beyond : rbx_volume_grow;

	return grow(ctx, volume_wanted.pool, volume_wanted.name, volume_wanted.size_bytes);
}

/* Servers that are away are told of, if it goes on without them. */
static int change(const struct cli_command *command, int argc, char **argv,
		  int (*call)(struct rbx_context *ctx), const char *if_busy, const char *when)
{
	int rc = volume_call(command, argc, argv, call, if_busy);

	volume_away_print(command, when);
	volume_away_forget();
	return rc;
}

#define WHEN_OPENED ", and learns of it when a program opens the volume while it is there"
#define WHEN_NAMED ", and gives up what it may have of it when it is back and a command names it"

static int grow(int argc, char **argv)
{
	return change(&volume_grow_command, argc, argv, grow_call, "", WHEN_OPENED);
}

const struct cli_command volume_grow_command = {
	.name = "volume grow",
	.purpose = "make a volume larger, which no program has open",
	.notes = "What is new reads as zeros, and takes memory as it is written, or at once if the volume\n"
		 "was made with --reserve: then all its servers must be there that are not out. Another one that\n"
		 "is away learns of it when a program opens the volume. A grow that was interrupted has\n"
		 "happened, or has not: see rdmabox volume show, and do it again.",
	CLI_OPTIONS(grow_options),
	.run = grow,
	.prepare = volume_prepare,
};

/* ---- rename ----------------------------------------------------------------------------*/

static const struct cli_option rename_options[] = {
	VOLUME_NAME,
	{ "new-name", "NEW-NAME", "name that it will have", cli_set_text, volume_wanted.new_name,
	  .max = sizeof(volume_wanted.new_name), .is_required = true,
	  .place = CLI_OPTION_OR_WORD },
	VOLUME_POOL("servers that have it; more than half of them must be there"),
	VOLUME_REACH,
};

static int rename_call(struct rbx_context *ctx)
{
	return rbx_volume_rename(ctx, volume_wanted.pool, volume_wanted.name,
				 volume_wanted.new_name);
}

static int rename_volume(int argc, char **argv)
{
	return change(&volume_rename_command, argc, argv, rename_call, "", WHEN_OPENED);
}

const struct cli_command volume_rename_command = {
	.name = "volume rename",
	.purpose = "give a volume another name, which no program has open",
	.notes = "A rename that was interrupted has happened, or has not: rdmabox volume list tells the\n"
		 "name. Whoever opens the volume next has all servers agree. A server that is away learns of it\n"
		 "in the same way; servers of the list that are none of the volume's must be there.",
	CLI_OPTIONS(rename_options),
	.run = rename_volume,
	.prepare = volume_prepare,
};

/* ---- remove ----------------------------------------------------------------------------*/

static const struct cli_option remove_options[] = {
	VOLUME_NAME,
	VOLUME_POOL("servers that have it; more than half of them must be there"),
	{ "force", NULL, "even if a program has it open, or servers are lost", cli_set_flag,
	  .field = &volume_wanted.force,
	  .details = "The program is shut out. Without it, more than half of the servers must be there." },
	VOLUME_REACH,
};

static int remove_call(struct rbx_context *ctx)
{
	return rbx_volume_remove(ctx, volume_wanted.pool, volume_wanted.name,
				 volume_wanted.force != 0);
}

static int remove_volume(int argc, char **argv)
{
	return change(&volume_remove_command, argc, argv, remove_call,
		      "; --force removes it all the same", WHEN_NAMED);
}

const struct cli_command volume_remove_command = {
	.name = "volume remove",
	.purpose = "remove a volume, and give its memory back",
	.notes = "What is in it is lost. A remove that was interrupted has happened, or has not: see rdmabox\n"
		 "volume list, which finishes it, and do it again. A server that is away gives up what it has\n"
		 "when it is back and a command names it. An admin of the servers (rdmabox serve --secrets)\n"
		 "removes volumes of any owner.",
	CLI_OPTIONS(remove_options),
	.run = remove_volume,
	.prepare = volume_prepare,
};
