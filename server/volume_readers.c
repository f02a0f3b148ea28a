/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_readers.c - sessions that only read a named volume, beside its writer.
 *
 * VOLUME_READ binds a session to a volume without any say in who writes it: no epoch is promised,
 * and neither the writer, its loans nor the labels are touched. Its data queue pairs are made in
 * the domain of the volume, so the keys that LABELS tells it are good for them. All else that a
 * session may ask for is refused. If it ends, nothing else does.
 *
 * A volume that was removed is told as such, as long as the server knows of it. One that is not
 * there may have left this server for others.
 *
 * What a reader has read of LABELS gets old. So it asks with VOLUME_READ again and again, and is
 * told the record and two counts of what has become of the labels. It is the reader that judges by
 * that what it may still read (core/reading.h). A key ends with its slab, and a volume that ends
 * takes its readers along: so none of them keeps a volume, a slab or a server from ending.
 *
 * A reader has the credential of the volume, by which it could be opened for writing as well. So
 * nothing here keeps a reader that breaks the rules from writing; that costs its owner no more
 * than a writer that does.
 */
#include "core/record.h"
#include "server/volume_state.h"

void rbx_volume_labels_changed(struct rbx_holder *holder, bool is_lost)
{
	struct rbx_kept_volume *kept;

	if (!holder->is_volume)
		return;
	kept = RBX_CONTAINER_OF(holder, struct rbx_kept_volume, holder);
	kept->changes_count++;
	kept->losses_count += is_lost;
}

static uint32_t judge(const struct rbx_server *s, const struct rbx_client *client,
		      const struct rbx_kept_volume *kept)
{
	/* Without a record it is still being made. */
	if (!kept || !kept->record.epoch)
		return RBX_REASON_NO_VOLUME;
	if (strcmp(kept->record.owner, client->owner->credential))
		return RBX_REASON_NOT_OWNER;
	if (client->reading == kept || kept->record.flags & RBX_WIRE_REMOVED)
		return RBX_REASON_NONE;
	if (client->reading || client->volume || !rbx_session_has_nothing(s, client))
		return RBX_REASON_OUT_OF_TURN;
	if (kept->readers_count >= RBX_READERS_OF_VOLUME_MAX)
		return RBX_REASON_TOO_MANY;
	return RBX_REASON_NONE;
}

static void bind(struct rbx_server *s, struct rbx_client *client, struct rbx_kept_volume *kept)
{
	client->reading = kept;
	client->next_reader = kept->readers;
	kept->readers = client;
	kept->readers_count++;
	rbx_log(&s->log, "volume %s: read by %s", kept->record.name, client->name);
}

void rbx_volume_read(struct rbx_server *s, struct rbx_connection *c,
		     const struct rbx_wire_message *message)
{
	struct rbx_kept_volume *kept = rbx_volume_find_id(s, message->volume_id) ?:
				       rbx_volume_find_removed(s, message->volume_id);
	uint32_t reason = judge(s, c->client, kept);
	struct rbx_wire_message answer = {
		.type = RBX_WIRE_VOLUME_READING,
		.request_id = message->request_id,
	};

	if (reason == RBX_REASON_NO_VOLUME || reason == RBX_REASON_NOT_OWNER) {
		rbx_connection_answer_error(s, c, message->request_id, reason);
		return;
	}
	if (reason) {
		rbx_connection_refuse(s, c, message->request_id, reason);
		return;
	}
	if (!c->client->reading && !(kept->record.flags & RBX_WIRE_REMOVED))
		bind(s, c->client, kept);
	answer.reading.record = kept->record;
	answer.reading.changes_count = kept->changes_count;
	answer.reading.losses_count = kept->losses_count;
	rbx_connection_answer(s, c, &answer);
}

void rbx_volume_reader_left(struct rbx_client *client)
{
	struct rbx_kept_volume *kept = client->reading;
	struct rbx_client **link = &kept->readers;

	RBX_ASSERT(!client->qps_count);
	while (*link != client) /* bounded: so many read a volume at most */
		link = &(*link)->next_reader;
	*link = client->next_reader;
	kept->readers_count--;
	client->reading = NULL;
}

void rbx_volume_readers_end(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	while (kept->readers)
		rbx_client_leave(s, kept->readers);
}
