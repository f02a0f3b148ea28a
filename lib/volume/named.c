/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.c - what the opening of a named volume (client/opening.h) needs of a program.
 */
#include "lib/volume/named.h"

#include <string.h>
#include <unistd.h>

#include "client/opening.h"
#include "lib/volume/crowd.h"

void rbx_holder_describe(char holder[RBX_WIRE_HOLDER_BYTES])
{
	char host[40] = "";

	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "?");
	snprintf(holder, RBX_WIRE_HOLDER_BYTES, "%s, process %d", host, (int)getpid());
}

int rbx_volume_named_begin(struct rbx_volume *volume, const char *servers, char **members)
{
	struct rbx_crowd *crowd;
	int err = rbx_crowd_open_there(volume->ctx, servers, &crowd);

	if (err)
		return err;
	err = rbx_opening_begin(&volume->control, crowd, volume->options.name,
				volume->options.take_over, members);
	rbx_crowd_close(crowd);
	if (!err) { /* as it was made */
		volume->options.replicas = volume->control.named->record.replicas;
		volume->options.checksums = rbx_named_has_tails(volume->control.named);
	}
	return err;
}
