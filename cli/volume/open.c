/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * open.c - opens the volume that the command line names.
 *
 * A signal does not end that, as the volume would stay open for others until the lease is over. The
 * volume is closed when it is open.
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

static bool may_take_over(const struct cli_command *command)
{
	return volume_has_option(command, &volume_wanted.take_over) && !volume_wanted.take_over &&
	       !volume_wanted.read_only;
}

static int tell_interrupted(const struct cli_command *command)
{
	cli_fail(command, "interrupted before volume %s was open; nothing was done",
		 volume_wanted.name);
	return CLI_EXIT_SIGNAL + cli_interrupted();
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
	*volume = NULL;
	if (cli_interrupt_opens(true))
		return tell_interrupted(command);
	err = rbx_volume_open(ctx, volume, volume_wanted.pool, 0, &options);
	if (cli_interrupt_opens(false)) {
		rbx_volume_close(*volume);
		*volume = NULL;
		return tell_interrupted(command);
	}
	if (!err)
		return CLI_EXIT_OK;
	return cli_fail(command, "%s%s", rbx_last_error(),
			err == -EBUSY && may_take_over(command) ? ", or add --take-over" : "");
}
