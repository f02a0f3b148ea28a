/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* returned.c - see returned.h. */
#include "client/returned.h"

#include "client/session.h"
#include "core/status.h"
#include "core/upkeep.h"

#define ROOM_FIRST 64u

static int room_make(struct rbx_returned *returned)
{
	uint32_t room = returned->room ? 2 * returned->room : ROOM_FIRST;
	struct rbx_returned_slab *slabs = rbx_memory_make(room * sizeof(*slabs));

	if (!slabs)
		return rbx_error(-ENOMEM, "out of memory");
	if (returned->count)
		rbx_port_copy(slabs, returned->slabs, returned->count * sizeof(*slabs));
	rbx_memory_free(returned->slabs);
	returned->slabs = slabs;
	returned->room = room;
	return 0;
}

int rbx_returned_note(struct rbx_returned *returned, const struct rbx_wire_label *label,
		      const struct rbx_loan *loan)
{
	int err = returned->count == returned->room ? room_make(returned) : 0;

	if (!err)
		returned->slabs[returned->count++] = (struct rbx_returned_slab){
			.loan = *loan,
			.label = label->label,
			.behind = label->behind,
			.is_complete = label->is_complete,
		};
	return err;
}

uint32_t rbx_returned_take(struct rbx_returned *returned, struct rbx_upkeep *upkeep,
			   uint32_t server)
{
	uint32_t i, count = 0;

	for (i = 0; i < returned->count; i++) {
		struct rbx_returned_slab *slab = &returned->slabs[i];

		slab->is_in_use = !rbx_upkeep_returned(upkeep, server, slab->label, &slab->loan);
		count += slab->is_in_use;
	}
	return count;
}

void rbx_returned_give_back(struct rbx_returned *returned, struct rbx_session *session)
{
	uint32_t i;
	int err = 0;

	/* A server that refuses one may take the others. */
	for (i = 0; i < returned->count && !rbx_status_is_away(err); i++)
		if (!returned->slabs[i].is_in_use)
			err = rbx_session_unmap(session, &returned->slabs[i].loan);
	rbx_returned_forget(returned);
}

void rbx_returned_forget(struct rbx_returned *returned)
{
	rbx_memory_free(returned->slabs);
	*returned = (struct rbx_returned){ .slabs = NULL };
}
