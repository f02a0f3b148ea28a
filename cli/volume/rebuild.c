/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume rebuild: makes the replicas anew that a volume lacks, and ends when it is whole.
 *
 * A volume does that by itself as long as a program has it open. So this opens it, and waits.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <time.h>

#include "cli/volume/volume.h"

#define LOOK_MS 200

static const struct cli_option options[] = {
	VOLUME_NAME,
	VOLUME_POOL("servers that have it, and others for its replicas"),
	VOLUME_TAKE_OVER,
	VOLUME_REACH,
};

/* What its threads tell. */
struct fate {
	_Atomic uint32_t stuck_count; /* slabs for which there is no server */
	_Atomic bool has_stopped;
	char why[256]; /* it has stopped; written before that */
};

static void note_event(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	struct fate *fate = user;

	if (event->kind == RBX_EVENT_REBUILD_STUCK) {
		atomic_store(&fate->stuck_count, event->slab_count);
	} else if (event->kind == RBX_EVENT_STOPPED && !atomic_load(&fate->has_stopped)) {
		snprintf(fate->why, sizeof(fate->why), "%s", event->reason);
		atomic_store(&fate->has_stopped, true);
	}
	volume_event_show(volume, event, NULL);
}

/* A signal ends it. */
static void pause_a_while(void)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000 };

	nanosleep(&pause, NULL);
}

static int wait_whole(struct rbx_context *ctx, struct rbx_volume *volume, struct fate *fate)
{
	const struct cli_command *command = &volume_rebuild_command;
	struct volume_progress progress;
	struct rbx_volume_status status;
	struct rbx_volume_info info;
	const char *reason = NULL;

	volume_progress_begin(&progress, "rebuild", 0);
	do {
		rbx_volume_status(volume, &status);
		volume_progress_show(&progress, status.rebuilt_bytes);
		if (atomic_load(&fate->has_stopped))
			reason = fate->why;
		else if (status.slabs_lost)
			reason = "some of its slabs are lost: rdmabox volume clear-lost tells which";
		else if (atomic_load(&fate->stuck_count))
			reason = "no server has memory for its replicas: rdmabox volume add-server";
		else
			reason = volume_info_ask(ctx, &info);
		if (!reason && info.is_whole && !status.slabs_rebuilding)
			break;
		pause_a_while();
	} while (!reason && !cli_interrupted());
	volume_progress_end(&progress, status.rebuilt_bytes, !reason && !cli_interrupted());
	if (reason) {
		cli_fail(command, "volume %s is not whole: %s", volume_wanted.name, reason);
		return CLI_EXIT_FAILED;
	}
	if (cli_interrupted()) {
		cli_fail(command, "interrupted; it may be given again, and goes on");
		return CLI_EXIT_SIGNAL + cli_interrupted();
	}
	printf("volume %s is whole; %" PRIu64 " bytes were copied\n", volume_wanted.name,
	       status.rebuilt_bytes);
	return CLI_EXIT_OK;
}

static int rebuild(int argc, char **argv)
{
	struct fate fate = { .stuck_count = 0 };
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	int rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_rebuild_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	cli_interrupt_catch(false);
	rc = volume_open(&volume_rebuild_command, ctx, &volume, note_event, &fate);
	if (!rc) {
		rc = wait_whole(ctx, volume, &fate);
		rbx_volume_close(volume);
	}
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_rebuild_command = {
	.name = "volume rebuild",
	.purpose = "make replicas anew that a volume lacks, and wait until it is whole",
	.notes = "For a volume that no program has open: one that has does the same. The exit code is 1 if it\n"
		 "cannot be: no server has memory for the replicas, or slabs are lost.",
	CLI_OPTIONS(options),
	.run = rebuild,
	.prepare = volume_prepare,
};
