/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * open.c - opens the volume that the command line names.
 */
#include <errno.h>

#include "cli/volume/volume.h"

void volume_event_show(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	(void)volume;
	(void)user;
	if (event->kind == RBX_EVENT_OPENING)
		fprintf(stderr, "rdmabox volume: opening: %u slabs, %s\n", event->slab_count,
			event->reason);
}

int volume_open(const struct cli_command *command, struct rbx_context *ctx,
		struct rbx_volume **volume, volume_event_fn *event, void *user)
{
	struct rbx_volume_options options;
	int err;

	rbx_volume_options_defaults(&options);
	options.name = volume_wanted.name;
	options.take_over = volume_wanted.take_over;
	options.read_only = volume_wanted.read_only;
	options.event = event;
	options.user = user;
	cli_interrupt_ends_at_once(true);
	err = rbx_volume_open(ctx, volume, volume_wanted.pool, 0, &options);
	cli_interrupt_ends_at_once(false);
	if (!err)
		return CLI_EXIT_OK;
	return cli_fail(command, "%s%s", rbx_last_error(),
			err == -EBUSY && !volume_wanted.take_over && !volume_wanted.read_only ?
				", or add --take-over" :
				"");
}
