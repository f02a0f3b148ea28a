/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.c - see crowd.h.
 */
#include <stdlib.h>

#include "lib/volume/crowd.h"

void rbx_crowd_close(struct rbx_crowd *crowd)
{
	while (crowd->count)
		rbx_session_close(crowd->sessions[--crowd->count]);
	rbx_name_list_free(&crowd->list);
	free(crowd);
}

/* One server under two names would be asked twice. */
static int twice_check(const struct rbx_crowd *crowd, uint32_t index)
{
	uint64_t incarnation = rbx_session_incarnation(crowd->sessions[index]);
	uint32_t i;

	for (i = 0; i < index; i++)
		if (rbx_session_incarnation(crowd->sessions[i]) == incarnation)
			return rbx_error(-EINVAL, "server %s is named twice: %s is the same one",
					 crowd->list.names[index], crowd->list.names[i]);
	return 0;
}

int rbx_crowd_open(struct rbx_context *ctx, const char *servers, struct rbx_crowd **made)
{
	struct rbx_crowd *crowd = calloc(1, sizeof(*crowd));
	int err;

	if (!crowd)
		return rbx_error(-ENOMEM, "out of memory");
	err = rbx_name_list_make(&crowd->list, servers);
	while (!err && crowd->count < crowd->list.count) {
		err = rbx_named_session_open(ctx, crowd->list.names[crowd->count],
					     &crowd->sessions[crowd->count]);
		if (!err)
			err = twice_check(crowd, crowd->count++);
	}
	if (err)
		rbx_crowd_close(crowd);
	else
		*made = crowd;
	return err;
}
