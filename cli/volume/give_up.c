/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume give-up and clear-lost: a volume goes on without servers that are gone for good.
 *
 * Without --gone and --yes they only say what there is, and change nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/volume/volume.h"

#define RANGES_SHOWN 32u
/* Of an incarnation, as it is printed. */
#define GONE_DIGITS 16

/* What is there, and what is not. */
struct found {
	struct rbx_volume_loss loss;
	struct rbx_volume_range ranges[RANGES_SHOWN];
	int ranges_count; /* of all */
};

static int look(struct rbx_context *ctx, struct found *found)
{
	found->ranges_count = rbx_volume_loss_look(ctx, volume_wanted.pool, volume_wanted.name,
						   &found->loss, found->ranges, RANGES_SHOWN);
	return found->ranges_count < 0 ? found->ranges_count : 0;
}

static void print_gone(const struct rbx_volume_loss *loss)
{
	printf("volume %s: %u of its %u servers are not there\n", volume_wanted.name,
	       loss->servers_gone, loss->servers);
	for (uint32_t i = 0; i < loss->servers_gone; i++)
		printf("  %-14s %016" PRIx64 "\n", "gone", loss->gone[i]);
	printf("  %-14s %u\n", "slabs", loss->slabs);
	printf("  %-14s %u\n", "slabs_found", loss->slabs_found);
}

/* Slabs that no server has which is there. */
static void print_ranges(const struct found *found, const char *what)
{
	if (!found->ranges_count)
		return;
	printf("slabs that no server has: %s. Bytes, from and behind:\n", what);
	for (int i = 0; i < found->ranges_count && i < (int)RANGES_SHOWN; i++)
		printf("  %-14" PRIu64 " %" PRIu64 "\n", found->ranges[i].offset,
		       found->ranges[i].offset + found->ranges[i].length_bytes);
	if (found->ranges_count > (int)RANGES_SHOWN)
		printf("  and %d more\n", found->ranges_count - (int)RANGES_SHOWN);
}

/* ---- give-up ------------------------------------------------------------------------------*/

static const struct cli_option give_up_options[] = {
	VOLUME_NAME,
	VOLUME_POOL("servers that have it, also those that are gone"),
	{ "gone", "ID[,...]", "give these servers up, and do not only say which are gone", cli_set_text,
	  volume_wanted.gone, .max = sizeof(volume_wanted.gone),
	  .details = "Their incarnations, 16 digits each, as the command prints them without this option. "
		     "If one of them is there, or another one is missing, nothing is done." },
	{ "force", NULL, "even if a program has it open, or data may be old", cli_set_flag,
	  .field = &volume_wanted.force,
	  .details = "With --gone. The program is shut out. If not more than half of its servers are there, "
		     "nobody can know whether the others had put them out before: then what they have is "
		     "old." },
	VOLUME_REACH,
};

static const char *blank_or_lost(const struct rbx_volume_loss *loss)
{
	if (loss->may_lose)
		return "they were never written, or are lost, and will fail to be read";
	return loss->is_lost ? "they were never written, or are lost" :
			       "they were never written, and read as zeros";
}

/* Ready to be given. */
static void print_command(const struct rbx_volume_loss *loss)
{
	puts("nothing was changed. If these servers will never come back as they were, give this, with the options of the connection as here:");
	printf("  rdmabox volume give-up %s --gone ", volume_wanted.name);
	for (uint32_t i = 0; i < loss->servers_gone; i++)
		printf("%s%016" PRIx64, i ? "," : "", loss->gone[i]);
	printf("%s --pool %s\n", loss->may_be_old || loss->is_open ? " --force" : "",
	       volume_wanted.pool);
}

static void print_plan(const struct found *found)
{
	const struct rbx_volume_loss *loss = &found->loss;

	print_gone(loss);
	print_ranges(found, blank_or_lost(loss));
	if (!loss->servers_gone) {
		puts("all servers are there: there is nothing to give up");
		return;
	}
	if (loss->may_be_old)
		puts("too few servers are there to know whether what they have is old");
	if (loss->is_open)
		puts("a program has it open, which would be shut out");
	if (loss->servers_unnamed)
		printf("%u of them %s not among those of --pool, and may be there: name all of them, or the servers that are left by a file (file:PATH)\n",
		       loss->servers_unnamed, loss->servers_unnamed > 1 ? "are" : "is");
	else
		print_command(loss);
}

/* Returns how many there are; -1: one is none. gone: of volume_wanted.gone, at most
 * RBX_VOLUME_SERVERS_MAX. */
static int parse_gone(uint64_t *gone)
{
	const char *at = volume_wanted.gone;
	int count = 0;

	for (;; at += GONE_DIGITS + 1) {
		if (count == RBX_VOLUME_SERVERS_MAX ||
		    strspn(at, "0123456789abcdef") != GONE_DIGITS ||
		    (at[GONE_DIGITS] && at[GONE_DIGITS] != ','))
			return -1;
		gone[count++] = strtoull(at, NULL, 16);
		if (!at[GONE_DIGITS])
			return count;
	}
}

static int give_up_gone(struct rbx_context *ctx)
{
	uint64_t gone[RBX_VOLUME_SERVERS_MAX];
	int count = parse_gone(gone);

	if (count < 0)
		return cli_fail(&volume_give_up_command, "--gone %s: it must be incarnations of 16 digits, with commas between them",
				volume_wanted.gone);
	count = rbx_volume_give_up(ctx, volume_wanted.pool, volume_wanted.name, gone,
				   (uint32_t)count, volume_wanted.force != 0);
	if (count < 0)
		return cli_fail(&volume_give_up_command, "%s", rbx_last_error());
	if (count)
		printf("volume %s goes on without %d server%s that it had\n", volume_wanted.name,
		       count, count > 1 ? "s" : "");
	else
		printf("volume %s: all its servers are there, and none of those was given up now: it never had them, or they were given up before\n",
		       volume_wanted.name);
	return CLI_EXIT_OK;
}

static int give_up_look(struct rbx_context *ctx)
{
	struct found found;

	if (look(ctx, &found))
		return cli_fail(&volume_give_up_command, "%s", rbx_last_error());
	print_plan(&found);
	return CLI_EXIT_OK;
}

static int give_up(int argc, char **argv)
{
	struct rbx_context *ctx;
	int rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_give_up_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	rc = *volume_wanted.gone ? give_up_gone(ctx) : give_up_look(ctx);
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_give_up_command = {
	.name = "volume give-up",
	.purpose = "go on without servers of a volume that are gone for good",
	.notes = "Without --gone it changes nothing: it prints the servers of the volume that do not answer, or\n"
		 "have lost their memory, and the command that gives them up. Give that only if they will never\n"
		 "come back as they were. Slabs that no other server has are I/O errors then, until rdmabox volume\n"
		 "clear-lost. If the command was interrupted, repeat it.",
	CLI_OPTIONS(give_up_options),
	.run = give_up,
	.prepare = volume_prepare,
};

/* ---- clear-lost ---------------------------------------------------------------------------*/

static const struct cli_option clear_lost_options[] = {
	VOLUME_NAME,
	VOLUME_POOL("servers that have it, all of them"),
	{ "yes", NULL, "do it, and do not only say what is lost", cli_set_flag,
	  .field = &volume_wanted.yes },
	VOLUME_REACH,
};

static void print_lost(const struct found *found)
{
	if (!found->loss.is_lost) {
		printf("volume %s: nothing is lost\n", volume_wanted.name);
		return;
	}
	if (found->loss.slabs_found == found->loss.slabs) {
		puts("each slab was found, so no byte is lost; nothing was changed: give --yes to have the volume say so");
		return;
	}
	print_ranges(found, "they were never written, or are lost");
	puts("nothing was changed: give --yes to make them zeros");
}

static int clear_lost(int argc, char **argv)
{
	struct rbx_context *ctx;
	struct found found;
	int err, rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_clear_lost_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	if (volume_wanted.yes)
		err = rbx_volume_clear_lost(ctx, volume_wanted.pool, volume_wanted.name);
	else
		err = look(ctx, &found);
	if (err)
		rc = cli_fail(&volume_clear_lost_command, "%s", rbx_last_error());
	else if (!volume_wanted.yes)
		print_lost(&found);
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_clear_lost_command = {
	.name = "volume clear-lost",
	.purpose = "make slabs of a volume zeros that were lost with their servers",
	.notes = "After rdmabox volume give-up, slabs that no server has cannot be read or written: they are\n"
		 "lost, or were never written. No program may have the volume open.",
	CLI_OPTIONS(clear_lost_options),
	.run = clear_lost,
	.prepare = volume_prepare,
};
