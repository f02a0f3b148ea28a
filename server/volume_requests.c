/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_requests.c - the requests about named volumes.
 *
 * VOLUME_OPEN grants a session the volume in a writer epoch. From then on no older epoch is
 * granted, and the session that had it before has ended. So a server that grants knows that
 * nothing more is read or written by that client. VOLUME_ACCEPT changes the record; it is
 * decided by acceptor.h, under the epoch that was promised.
 *
 * Volumes belong to the owner of the session that made them. An admin sees those of all owners,
 * and may open them only to remove them. Such a session has no way to what is in the volume: it
 * gets no data queue pair (attach.c), no slab (requests.c), and no label or record.
 *
 * A session that was opened to remove the volume removes it everywhere, one server after another.
 * So each of them knows afterwards that it was removed, and in which epoch: whoever finds the
 * volume at another server asks by its id, and finishes that. A volume that is only forgotten here
 * leaves nothing.
 */
#include "core/record.h"
#include "server/volume_state.h"

/* A command that only changes the volume has no data queue pair. If it was killed, nothing is under
 * way, and the next one needs not wait for its lease. */
static bool is_open(const struct rbx_kept_volume *kept)
{
	return kept->writer && (kept->writer->connection || kept->writer->had_qps);
}

static void volume_fill(struct rbx_server *s, const struct rbx_kept_volume *kept,
			struct rbx_wire_message *answer)
{
	*answer = (struct rbx_wire_message){
		.type = RBX_WIRE_VOLUME,
		.volume = {
			.record = kept->record,
			.promised_epoch = kept->acceptor.promised_epoch,
			.last_epoch = rbx_lender_last_epoch(s->lender),
			.is_open = is_open(kept),
		},
	};
	memcpy(answer->volume.holder, kept->writer_name, sizeof(kept->writer_name));
}

/* ---- Opening ---------------------------------------------------------------*/

/* The one that is meant: by its id if that is known, as its name may have changed. */
static struct rbx_kept_volume *find(const struct rbx_server *s,
				    const struct rbx_wire_volume_open *open)
{
	return open->volume_id ? rbx_volume_find_id(s, open->volume_id) :
				 rbx_volume_find(s, open->name);
}

static bool may_open(const struct rbx_client *client, const struct rbx_kept_volume *kept,
		     uint32_t mode)
{
	if (!strcmp(kept->record.owner, client->owner->credential))
		return true;
	return client->owner->is_admin &&
	       (mode == RBX_WIRE_OPEN_LOOK || mode == RBX_WIRE_OPEN_REMOVE);
}

/* A session is for one volume, and for nothing before it. */
static bool is_fresh(const struct rbx_server *s, const struct rbx_client *client,
		     const struct rbx_kept_volume *kept)
{
	if (client->volume)
		return client->volume == kept;
	return !client->reading && rbx_session_has_nothing(s, client);
}

static bool makes(const struct rbx_wire_volume_open *open)
{
	return open->mode == RBX_WIRE_OPEN_CREATE || open->mode == RBX_WIRE_OPEN_ANEW;
}

static bool is_by_its_writer(const struct rbx_wire_volume_open *open)
{
	return open->mode == RBX_WIRE_OPEN_ANEW || open->mode == RBX_WIRE_OPEN_RETURN;
}

/* The writer's record says that the server is OUT. Its epoch is the one that was promised if the
 * server was lost while that writer has the volume open; a later one shuts this one out as well.
 *
 * The request may come late, when the writer has had another session begin anew or return, and the
 * server is IN again. Then the session has seen another volume than there is: it has another holder
 * if it was made since, and it counts how often it was opened to return. */
static uint32_t take_back(struct rbx_server *s, struct rbx_client *client, uint64_t writer_epoch,
			  struct rbx_kept_volume *kept)
{
	if (client->seen_holder_id != kept->holder.id ||
	    client->seen_returns != kept->returns_count)
		return RBX_REASON_OUT_OF_TURN;
	if (writer_epoch != kept->acceptor.promised_epoch &&
	    !rbx_acceptor_promise(&kept->acceptor, writer_epoch))
		return RBX_REASON_TAKEN_OVER;
	rbx_volume_bind(s, kept, client); /* ends the session before, with its queue pairs */
	rbx_data_qps_end(s, client);
	kept->returns_count++;
	kept->is_spared = rbx_lender_is_draining(s->lender);
	pthread_cond_broadcast(&s->slab_ended); /* a drain may not wait for it any more */
	return RBX_REASON_NONE;
}

static void give_up(struct rbx_server *s, struct rbx_client *client, struct rbx_kept_volume *kept)
{
	rbx_volume_unbind(client);
	rbx_volume_end(s, kept);
}

/*
 * Again: by the client that was granted this epoch, for no other one was. Such a request may come
 * late, when that client has opened it once more: then it loses the session that it has, and no
 * more than that.
 */
static bool is_promised(struct rbx_kept_volume *kept, const struct rbx_wire_volume_open *open)
{
	if (open->mode == RBX_WIRE_OPEN_AGAIN)
		return open->writer_epoch == kept->acceptor.promised_epoch;
	if (open->mode == RBX_WIRE_OPEN_RETURN) /* take_back() has looked */
		return true;
	return rbx_acceptor_promise(&kept->acceptor, open->writer_epoch);
}

/* Returns RBX_REASON_NONE, or the reason against it. */
static uint32_t grant(struct rbx_server *s, struct rbx_client *client,
		      const struct rbx_wire_volume_open *open,
		      struct rbx_kept_volume **kept)
{
	uint32_t reason = RBX_REASON_NONE;

	if (!is_fresh(s, client, *kept))
		return RBX_REASON_OUT_OF_TURN;
	if (is_by_its_writer(open))
		reason = take_back(s, client, open->writer_epoch, *kept);
	if (!reason && open->mode == RBX_WIRE_OPEN_ANEW)
		give_up(s, client, *kept);
	if (!reason && makes(open))
		reason = rbx_volume_make(s, client, open, kept);
	if (reason)
		return reason;
	if (!is_promised(*kept, open))
		return RBX_REASON_TAKEN_OVER;
	rbx_data_qps_end(s, client); /* of an earlier epoch of this session */
	rbx_volume_bind(s, *kept, client);
	client->only_removes = open->mode == RBX_WIRE_OPEN_REMOVE;
	memcpy((*kept)->writer_name, open->holder, sizeof((*kept)->writer_name));
	rbx_lender_opened(s->lender, (*kept)->holder.id);
	rbx_remember_volume(s, *kept);
	rbx_log(&s->log, "volume %s: opened by %s", (*kept)->record.name, open->holder);
	return RBX_REASON_NONE;
}

/* Why a volume of this id may not be made; or RBX_REASON_NONE. It may have been removed by a client
 * that came after the one that gives it to this server once more. Its owner alone can do that. */
static uint32_t removed_judge(const struct rbx_server *s, const struct rbx_client *client,
			      const struct rbx_wire_volume_open *open)
{
	const struct rbx_kept_volume *removed = rbx_volume_find_removed(s, open->volume_id);

	if (removed && !may_open(client, removed, open->mode))
		return RBX_REASON_NOT_OWNER;
	if (removed && open->writer_epoch <= removed->record.epoch)
		return RBX_REASON_TAKEN_OVER;
	return RBX_REASON_NONE;
}

/* Why it may not be opened in this way; or RBX_REASON_NONE. Without a record it is still being
 * made, and is forgotten as soon as its maker is gone: nobody else can have it. */
static uint32_t open_judge(const struct rbx_server *s, const struct rbx_client *client,
			   const struct rbx_kept_volume *kept,
			   const struct rbx_wire_volume_open *open)
{
	if (open->mode == RBX_WIRE_OPEN_CREATE) /* no two have one id, either */
		return removed_judge(s, client, open) ?:
		       kept || rbx_volume_name_is_taken(s, open->name, NULL) ?
			       RBX_REASON_NAME_TAKEN :
			       RBX_REASON_NONE;
	if (!kept)
		return RBX_REASON_NO_VOLUME;
	if (!may_open(client, kept, open->mode))
		return RBX_REASON_NOT_OWNER;
	if (open->mode != RBX_WIRE_OPEN_LOOK && !kept->record.epoch)
		return RBX_REASON_NO_VOLUME;
	if (open->mode == RBX_WIRE_OPEN_ANEW && rbx_volume_name_is_taken(s, open->name, kept))
		return RBX_REASON_NAME_TAKEN;
	return RBX_REASON_NONE;
}

/* The name is free if the client that was making a volume of that name was killed. */
static void abandoned_end(struct rbx_server *s, const char name[RBX_WIRE_VOLUME_NAME_BYTES])
{
	struct rbx_kept_volume *kept = rbx_volume_find(s, name);

	if (kept && rbx_volume_is_abandoned(kept))
		rbx_client_leave(s, kept->writer);
}

static void volume_open(struct rbx_server *s, struct rbx_connection *c,
			const struct rbx_wire_message *message)
{
	const struct rbx_wire_volume_open *open = &message->volume_open;
	struct rbx_wire_message answer;
	struct rbx_kept_volume *kept;
	uint32_t reason;

	abandoned_end(s, open->name);
	kept = find(s, open);
	if (!kept && open->mode == RBX_WIRE_OPEN_LOOK && open->volume_id)
		kept = rbx_volume_find_removed(s, open->volume_id);
	reason = open_judge(s, c->client, kept, open);
	if (!reason && open->mode != RBX_WIRE_OPEN_LOOK)
		reason = grant(s, c->client, open, &kept);
	if (reason) {
		rbx_connection_answer_error(s, c, message->request_id, reason);
		return;
	}
	if (open->mode == RBX_WIRE_OPEN_LOOK) {
		c->client->seen_holder_id = kept->holder.id;
		c->client->seen_returns = kept->returns_count;
	}
	volume_fill(s, kept, &answer);
	answer.request_id = message->request_id;
	rbx_connection_answer(s, c, &answer);
}

static void volume_list(struct rbx_server *s, struct rbx_connection *c,
			const struct rbx_wire_message *message)
{
	struct rbx_wire_message answer;
	uint64_t i;

	for (i = message->cursor; i < s->volumes.used; i++) {
		if (!rbx_volume_is_there(&s->volumes.kept[i]) ||
		    !may_open(c->client, &s->volumes.kept[i], RBX_WIRE_OPEN_LOOK))
			continue;
		volume_fill(s, &s->volumes.kept[i], &answer);
		answer.request_id = message->request_id;
		answer.volume.next = i + 1;
		rbx_connection_answer(s, c, &answer);
		return;
	}
	rbx_connection_answer_error(s, c, message->request_id, RBX_REASON_NO_VOLUME);
}

/* ---- Of a session that is bound to it ------------------------------------------*/

static void done(struct rbx_server *s, struct rbx_connection *c, uint64_t request_id,
		 uint64_t writer_epoch)
{
	const struct rbx_wire_message answer = {
		.type = RBX_WIRE_VOLUME_DONE,
		.request_id = request_id,
		.writer_epoch = writer_epoch,
	};

	rbx_connection_answer(s, c, &answer);
}

/* Another record of the same volume: its owner is the one that it was made with, and it has
 * checksums from the beginning or never. Its version leaves room for those that come. */
static bool is_acceptable(const struct rbx_kept_volume *kept, const struct rbx_wire_record *record,
			  const struct rbx_membership *membership)
{
	if (record->volume_id != kept->record.volume_id ||
	    strcmp(record->owner, kept->record.owner) || record->flags & RBX_WIRE_REMOVED)
		return false;
	if (rbx_membership_fault(membership) || record->version > RBX_KEPT_VERSION_MAX ||
	    !record->slab_bytes || record->size_bytes / record->slab_bytes > RBX_SLABS_MAX ||
	    !record->replicas || record->replicas > RBX_REPLICAS_MAX)
		return false;
	return !kept->record.epoch ||
	       !((record->flags ^ kept->record.flags) & RBX_WIRE_CHECKSUMS);
}

/* The record takes the place of the one before. A name that it had is not given to another volume
 * before a record comes that leaves the name as it is: other servers may not know of it yet. */
static void record_take(struct rbx_server *s, struct rbx_kept_volume *kept,
			const struct rbx_wire_record *record)
{
	memset(kept->reserved_name, 0, sizeof(kept->reserved_name));
	if (strcmp(record->name, kept->record.name)) {
		rbx_log(&s->log, "volume %s has the name %s now", kept->record.name, record->name);
		memcpy(kept->reserved_name, kept->record.name, sizeof(kept->reserved_name));
	}
	kept->record = *record;
	kept->is_spared = false;
	rbx_remember_volume(s, kept);
	pthread_cond_broadcast(&s->slab_ended); /* a drain may not be waited for any more */
}

static void volume_accept(struct rbx_server *s, struct rbx_connection *c,
			  const struct rbx_wire_message *message)
{
	const struct rbx_wire_record *record = &message->record;
	struct rbx_kept_volume *kept = c->client->volume;
	struct rbx_membership membership;
	bool is_newer;

	rbx_record_get_membership(record, &membership);
	if (!is_acceptable(kept, record, &membership)) {
		rbx_connection_refuse(s, c, message->request_id, RBX_REASON_MALFORMED);
		return;
	}
	is_newer = rbx_membership_is_newer(&membership, &kept->acceptor.membership);
	if (is_newer && rbx_volume_name_is_taken(s, record->name, kept)) {
		rbx_connection_answer_error(s, c, message->request_id, RBX_REASON_NAME_TAKEN);
		return;
	}
	if (!rbx_acceptor_accept(&kept->acceptor, &membership)) {
		rbx_connection_answer_error(s, c, message->request_id, RBX_REASON_TAKEN_OVER);
		return;
	}
	if (is_newer)
		record_take(s, kept, record);
	done(s, c, message->request_id, kept->acceptor.promised_epoch);
}

static void volume_reserve(struct rbx_server *s, struct rbx_connection *c,
			   const struct rbx_wire_message *message)
{
	struct rbx_kept_volume *kept = c->client->volume;

	if (*message->name && rbx_volume_name_is_taken(s, message->name, kept)) {
		rbx_connection_answer_error(s, c, message->request_id, RBX_REASON_NAME_TAKEN);
		return;
	}
	memcpy(kept->reserved_name, message->name, sizeof(kept->reserved_name));
	rbx_remember_volume(s, kept);
	done(s, c, message->request_id, kept->acceptor.promised_epoch);
}

static void volume_remove(struct rbx_server *s, struct rbx_connection *c,
			  const struct rbx_wire_message *message)
{
	struct rbx_client *client = c->client;
	struct rbx_kept_volume *kept = client->volume;
	uint64_t epoch = kept->acceptor.promised_epoch;
	bool everywhere = client->only_removes;

	/* It may be an admin no more, since it opened it. */
	if (!may_open(client, kept, RBX_WIRE_OPEN_REMOVE)) {
		rbx_connection_answer_error(s, c, message->request_id, RBX_REASON_NOT_OWNER);
		return;
	}
	if (kept->owner != client->owner)
		rbx_log(&s->log, "volume %s of %s: admin %s removes it", kept->record.name,
			*kept->record.owner ? kept->record.owner : "clients without a name",
			client->name);
	rbx_data_qps_end(s, client);
	rbx_volume_unbind(client);
	if (everywhere)
		rbx_volume_end_everywhere(s, kept);
	else
		rbx_volume_end(s, kept);
	done(s, c, message->request_id, epoch);
}

static void labels_send(struct rbx_server *s, struct rbx_connection *c,
			const struct rbx_wire_message *message)
{
	struct rbx_wire_message answer = {
		.type = RBX_WIRE_LABELS_REPLY,
		.request_id = message->request_id,
	};
	struct rbx_wire_labels *labels = &answer.labels;
	const struct rbx_kept_volume *kept = c->client->volume ?: c->client->reading;
	uint64_t holder_id = kept->holder.id, at = message->cursor;
	struct rbx_lender_loan loan;
	bool more;

	while ((more = rbx_lender_next_of(s->lender, holder_id, at, &loan)) &&
	       labels->count < RBX_WIRE_LABELS_MAX) {
		const struct rbx_slab_memory *memory = &s->workers.slabs[loan.slab_id - 1];
		const struct rbx_slab *slab = &s->slabs[loan.slab_id - 1];

		labels->labels[labels->count++] = (struct rbx_wire_label){
			.label = slab->map.label,
			.slab_id = loan.slab_id,
			.epoch = loan.epoch,
			.remote_addr = (uintptr_t)memory->addr,
			.rkey = memory->mr->rkey,
			.is_complete = slab->map.is_complete,
			.intent = slab->intent,
			.behind = slab->behind,
		};
		at = loan.slab_id;
	}
	labels->next = more ? at : 0;
	rbx_connection_answer(s, c, &answer);
}

/* What becomes complete may have been written anywhere, until its writer says more. */
static void label_set(struct rbx_server *s, const struct rbx_lender_loan *loan, bool is_complete)
{
	struct rbx_slab *slab = &s->slabs[loan->slab_id - 1];

	if (is_complete && !slab->map.is_complete)
		slab->intent = UINT64_MAX;
	if (is_complete != slab->map.is_complete)
		rbx_volume_labels_changed(slab->holder, !is_complete);
	slab->map.is_complete = is_complete;
	if (is_complete)
		rbx_remember_slab(s, loan->slab_id, loan->epoch);
	else
		rbx_forget_slab(s, loan->slab_id);
}

/* SLAB_COMPLETE, or SLAB_INCOMPLETE. */
static void slab_label(struct rbx_server *s, struct rbx_connection *c,
		       const struct rbx_wire_message *message)
{
	const struct rbx_lender_loan loan = { message->slab_id, message->epoch };
	struct rbx_kept_volume *kept = c->client->volume;
	uint32_t reason = rbx_lender_check(s->lender, kept->holder.id, &loan);

	if (reason) {
		rbx_connection_answer_error(s, c, message->request_id, reason);
		return;
	}
	label_set(s, &loan, message->type == RBX_WIRE_SLAB_COMPLETE);
	done(s, c, message->request_id, kept->acceptor.promised_epoch);
}

/* The record says that the server is OUT, and is about to say that it is IN: before that, nothing
 * of what it has counts as complete. Its memory stays. */
static void volume_behind(struct rbx_server *s, struct rbx_connection *c,
			  const struct rbx_wire_message *message)
{
	struct rbx_kept_volume *kept = c->client->volume;
	struct rbx_lender_loan loan = { 0 };

	while (rbx_lender_next_of(s->lender, kept->holder.id, loan.slab_id, &loan))
		label_set(s, &loan, false);
	done(s, c, message->request_id, kept->acceptor.promised_epoch);
}

/* A slab that it has no more has no contents that could differ from others. */
static void intents_note(struct rbx_server *s, struct rbx_connection *c,
			 const struct rbx_wire_message *message)
{
	const struct rbx_wire_intents *intents = &message->intents;
	struct rbx_kept_volume *kept = c->client->volume;
	uint32_t i;

	for (i = 0; i < intents->count; i++) {
		const struct rbx_wire_intent *intent = &intents->intents[i];
		const struct rbx_lender_loan loan = { intent->slab_id, intent->epoch };

		if (rbx_lender_check(s->lender, kept->holder.id, &loan))
			continue;
		s->slabs[loan.slab_id - 1].intent = intent->word;
		s->slabs[loan.slab_id - 1].behind = intent->behind;
		if (rbx_slab_is_remembered(s, loan.slab_id))
			rbx_remember_slab(s, loan.slab_id, loan.epoch);
	}
	done(s, c, message->request_id, kept->acceptor.promised_epoch);
}

void rbx_volume_request(struct rbx_server *s, struct rbx_connection *c,
			const struct rbx_wire_message *message)
{
	if (message->type == RBX_WIRE_VOLUME_OPEN)
		volume_open(s, c, message);
	else if (message->type == RBX_WIRE_VOLUME_LIST)
		volume_list(s, c, message);
	else if (message->type == RBX_WIRE_VOLUME_READ)
		rbx_volume_read(s, c, message);
	else if (message->type == RBX_WIRE_LABELS && c->client->reading)
		labels_send(s, c, message);
	else if (!c->client->volume ||
		 (c->client->only_removes && message->type != RBX_WIRE_VOLUME_REMOVE))
		rbx_connection_refuse(s, c, message->request_id, RBX_REASON_OUT_OF_TURN);
	else if (message->type == RBX_WIRE_VOLUME_ACCEPT)
		volume_accept(s, c, message);
	else if (message->type == RBX_WIRE_VOLUME_REMOVE)
		volume_remove(s, c, message);
	else if (message->type == RBX_WIRE_VOLUME_RESERVE)
		volume_reserve(s, c, message);
	else if (message->type == RBX_WIRE_LABELS)
		labels_send(s, c, message);
	else if (message->type == RBX_WIRE_INTENTS)
		intents_note(s, c, message);
	else if (message->type == RBX_WIRE_VOLUME_BEHIND)
		volume_behind(s, c, message);
	else
		slab_label(s, c, message);
}
