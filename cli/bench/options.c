/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line of rdmabox bench: checks options against each other, and derives
 * values from them. The options themselves are in table.c.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/reach.h"

#define REQUESTS_MAX 65536 /* what the library allows */

/* ---- Checks between options -------------------------------------------------*/

int bench_block_check(const struct bench_options *o)
{
	if (o->block_bytes % 64 == 0 && o->block_bytes <= o->volume_bytes)
		return 0;
	return cli_fail(&bench_command, "--block %u must be a multiple of 64 and no larger than "
					"the volume", o->block_bytes);
}

static int check_options(const struct bench_options *o)
{
	if (!*o->pool)
		return cli_fail(&bench_command,
				"no servers; add --pool ADDR:PORT,...");
	if (!o->volume_bytes && !*o->volume_name)
		return cli_fail(&bench_command,
				"no volume; add --volume SIZE, or --volume-name NAME");
	if (o->volume_bytes && *o->volume_name)
		return cli_fail(&bench_command, "--volume and --volume-name exclude each "
						"other; give one of them");
	if (*o->volume_name && (o->volume.replicas != 1 || o->volume.checksums))
		return cli_fail(&bench_command, "--volume-name goes with neither --replicas nor "
						"--checksums: a named volume is as it was made");
	if (o->volume.take_over && !*o->volume_name)
		return cli_fail(&bench_command, "--take-over needs --volume-name NAME");
	if (o->volume.read_only &&
	    (!*o->volume_name || o->read_percent != 100 || o->verify || o->volume.take_over))
		return cli_fail(&bench_command, "--read-only needs --volume-name NAME and --op read, "
						"and goes with neither --verify nor --take-over");
	if (o->volume_bytes % 4096)
		return cli_fail(&bench_command, "--volume %" PRIu64
				" is not a multiple of 4096; round it up",
				o->volume_bytes);
	if (!*o->volume_name && bench_block_check(o))
		return CLI_EXIT_USAGE;
	if (o->volume.checksums && o->block_bytes % 4096)
		return cli_fail(&bench_command, "--block %u does not go with "
				"--checksums; give a multiple of 4096",
				o->block_bytes);
	if (o->library.fragment_bytes & (o->library.fragment_bytes - 1))
		return cli_fail(&bench_command, "--fragment %u is not a power "
				"of two; give one from 4K to 256K",
				o->library.fragment_bytes);
	if (o->runtime_s <= 0)
		return cli_fail(&bench_command,
				"--runtime must be above 0; give seconds");
	return cli_reach_check(&bench_command, o->library.secret_file,
			       o->library.insecure);
}

static uint64_t fragments_of(const struct bench_options *o, uint32_t bytes)
{
	/* One more, as a request may begin inside of a fragment. */
	return bytes / o->library.fragment_bytes + 1;
}

/* Lets the library hold all that will be outstanding, up to its limit. */
static void size_library(struct bench_options *o)
{
	uint64_t load = fragments_of(o, o->block_bytes) * o->depth * o->threads;
	uint64_t sweep = fragments_of(o, bench_sweep_bytes(o->block_bytes)) *
			 BENCH_SWEEP_DEPTH;
	uint64_t most = (load > sweep ? load : sweep) * o->volume.replicas;

	if (most > REQUESTS_MAX)
		most = REQUESTS_MAX;
	if (o->library.requests_max < most)
		o->library.requests_max = most;
}

struct bench_options *bench_options_parse(int argc, char **argv, int *exit_code)
{
	struct bench_options *o = &bench_options;
	int rc;

	rc = cli_parse(&bench_command, argc, argv);
	*exit_code = rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (!rc)
		rc = *exit_code = check_options(o);
	if (rc)
		return NULL;
	if (o->timing.kind == BENCH_BURST)
		o->depth = o->timing.burst_size;
	size_library(o);
	if (strcmp(o->buffers, "region"))
		strcpy(o->library.buffers, o->buffers);
	return o;
}
