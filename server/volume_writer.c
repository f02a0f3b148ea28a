/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_writer.c - the session that has a named volume open, one at a time; see volumes.h.
 *
 * Whoever is let in shuts the former one out. When it goes, the volume stays, unless it was never
 * made to its end.
 */
#include "server/log.h"
#include "server/state.h"
#include "server/volume_state.h"

void rbx_volume_bind(struct rbx_server *s, struct rbx_kept_volume *kept,
		     struct rbx_client *client)
{
	struct rbx_client *before = kept->writer;

	if (before && before != client) {
		rbx_log(&s->log, "volume %s: %s is shut out", kept->record.name, before->name);
		kept->shut_out_session_id = before->session_id;
		rbx_client_leave(s, before); /* its queue pairs first */
	}
	kept->writer = client;
	client->volume = kept;
}

void rbx_volume_unbind(struct rbx_client *client)
{
	struct rbx_kept_volume *kept = client->volume;

	RBX_ASSERT(kept->writer == client && !client->qps_count);
	kept->writer = NULL;
	kept->closed_ns = rbx_now_ns();
	client->volume = NULL;
	client->only_removes = false;
}

void rbx_volume_client_left(struct rbx_server *s, struct rbx_client *client)
{
	struct rbx_kept_volume *kept = client->volume;

	rbx_volume_unbind(client);
	rbx_lender_closed(s->lender, kept->holder.id);
	pthread_cond_broadcast(&s->slab_ended); /* a drain does not wait for its slabs now */
	/* It was not made to its end, so no client can have written to it. */
	if (!kept->record.epoch)
		rbx_volume_end(s, kept);
}

/* Nobody goes on with it: without a record only the session that makes it has it. What it may have
 * borrowed until the lease is over can be much (a volume that is reserved). */
bool rbx_volume_is_abandoned(const struct rbx_kept_volume *kept)
{
	return rbx_volume_is_there(kept) && !kept->record.epoch && kept->writer &&
	       !kept->writer->connection;
}

void rbx_volume_client_resumed(struct rbx_server *s, struct rbx_client *client,
			       uint64_t last_epoch)
{
	rbx_lender_writer_resumed(s->lender, client->volume->holder.id, last_epoch);
}
