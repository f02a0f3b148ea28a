/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader_watch.c - the thread that asks each server again and again how the volume is, see
 * reader.h.
 *
 * A server is asked for the record, and whether its labels have changed (VOLUME_READ). If they
 * have, it is asked for all of them, and once more for the record. So what is in the table is what
 * the server had at some moment. Nobody waits for an answer: a server that is silent holds up no
 * other.
 *
 * After each answer reading.h judges until when the table counts, and reads that wait are tried
 * once more.
 */
#include "client/session.h"
#include "core/record.h"
#include "lib/volume/reader.h"

/* Reads may want all servers to be asked at once; but no server more often than this. */
#define LOOK_SPACE_NS 20000000ull
/* Copies that are looked at under one holding of the lock. */
#define SWEEP_SLABS 1024u

static struct rbx_reading_server *heard_of(const struct rbx_reader_server *server)
{
	return &server->reader->heard[server - server->reader->servers];
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* With locks of the session held. */
static void answered(struct rbx_ask *ask)
{
	rbx_reader_wake(RBX_CONTAINER_OF(ask, struct rbx_reader_server, ask)->reader);
}

static void ask(struct rbx_reader_server *server)
{
	server->ask = (struct rbx_ask){
		.kind = RBX_CALL_TALK,
		.message = &server->message,
		.over = answered,
	};
	server->asked_ns = rbx_now_ns();
	server->is_out = true;
	rbx_session_ask(rbx_peer_session(server->peer), &server->ask);
}

static void look_ask(struct rbx_reader_server *server)
{
	server->message = (struct rbx_wire_message){
		.type = RBX_WIRE_VOLUME_READ,
		.volume_id = server->reader->record.volume_id,
	};
	ask(server);
}

static void labels_ask(struct rbx_reader_server *server, uint64_t cursor)
{
	server->message = (struct rbx_wire_message){ .type = RBX_WIRE_LABELS, .cursor = cursor };
	ask(server);
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static uint16_t name_of(const struct rbx_reader_server *server)
{
	return (uint16_t)(server - server->reader->servers + 1);
}

/* Nothing that was told of its slabs counts before all of them are told anew. */
static void labels_forget(struct rbx_reader_server *server)
{
	server->has_labels = false;
	server->is_void = true;
	heard_of(server)->seen_ns = heard_of(server)->all_ns = 0;
}

/* Whether the place may be given to another server: what that one has is not read. */
static bool is_of_no_use(const struct rbx_reader *reader, const struct rbx_reader_copy *copy)
{
	const struct rbx_reader_server *server = &reader->servers[copy->server - 1];

	return !heard_of(server)->is_there || !server->is_in;
}

/*
 * The copy of this server, or a place for it: a free one, or that of a server that is away or OUT,
 * which has to tell all its labels anew before it is read. NULL: so many servers that are IN have
 * the slab complete as no writer makes.
 */
static struct rbx_reader_copy *copy_find(struct rbx_reader_server *server, uint32_t slab_index)
{
	struct rbx_reader_copy *copies = rbx_reader_copies(server->reader, slab_index);
	struct rbx_reader_copy *free_one = NULL, *useless = NULL;

	for (uint32_t i = 0; i < RBX_SLOTS_MAX; i++) {
		if (copies[i].server == name_of(server))
			return &copies[i];
		if (!copies[i].server)
			free_one = &copies[i];
		else if (is_of_no_use(server->reader, &copies[i]))
			useless = &copies[i];
	}
	if (!free_one && useless)
		labels_forget(&server->reader->servers[useless->server - 1]);
	return free_one ?: useless;
}

static uint32_t slab_max(const struct rbx_reader *reader)
{
	return reader->volume->control.flow.map->slab_max;
}

/* False: there is no place for one of them. */
static bool labels_note(struct rbx_reader_server *server, const struct rbx_wire_labels *labels)
{
	struct rbx_reader *reader = server->reader;
	bool have_room = true;

	rbx_lock(&reader->lock);
	for (uint32_t i = 0; i < labels->count; i++) {
		const struct rbx_wire_label *label = &labels->labels[i];
		struct rbx_reader_copy *copy;

		if (!label->is_complete || label->label > slab_max(reader))
			continue;
		copy = copy_find(server, (uint32_t)label->label - 1);
		have_room &= copy != NULL;
		if (copy)
			*copy = (struct rbx_reader_copy){
				.remote_addr = label->remote_addr,
				.rkey = label->rkey,
				.server = name_of(server),
				.walk = server->walk,
			};
	}
	rbx_unlock(&reader->lock);
	return have_room;
}

/* Copies that the server has told of before, and has no more. Until now they counted as of
 * before. */
static void copies_sweep(struct rbx_reader_server *server)
{
	struct rbx_reader *reader = server->reader;

	for (uint32_t first = 0; first < slab_max(reader); first += SWEEP_SLABS) {
		uint32_t end = RBX_MIN(first + SWEEP_SLABS, slab_max(reader));
		struct rbx_reader_copy *copy = rbx_reader_copies(reader, first);

		rbx_lock(&reader->lock);
		for (; copy != rbx_reader_copies(reader, end); copy++)
			if (copy->server == name_of(server) && copy->walk != server->walk)
				copy->server = 0;
		rbx_unlock(&reader->lock);
	}
}

/* After an answer about its record. The labels count as of when that was asked, and not as of now:
 * by now the server may be OUT, and they may be old. */
static void walk_begin(struct rbx_reader_server *server)
{
	server->is_void = false;
	server->walk++;
	server->told_count = 0;
	server->walking_ns = server->asked_ns;
	server->walking_changes_count = server->changes_count;
	labels_ask(server, 0);
}

/* Bounded: a server that does not come to an end is asked anew, and nothing of it counts. */
static bool walk_goes_on(struct rbx_reader_server *server)
{
	const struct rbx_wire_labels *labels = &server->message.labels;
	uint64_t next = labels->next;

	if (!labels_note(server, labels))
		labels_forget(server);
	server->told_count += labels->count;
	if (!next && !server->is_void)
		return false;
	if (server->is_void || !labels->count || server->told_count >= RBX_LENT_SLABS_MAX) {
		server->look_at_ns = rbx_now_ns() + RBX_READER_LOOK_NS;
		return true;
	}
	labels_ask(server, next);
	return true;
}

/* All labels were told after walking_ns, each at some moment. */
static void walk_end(struct rbx_reader_server *server)
{
	copies_sweep(server);
	server->has_labels = true;
	server->walked_changes_count = server->walking_changes_count;
	server->walked_ns = server->walking_ns;
	heard_of(server)->seen_ns = server->walking_ns;
	if (!server->reader->is_ending)
		look_ask(server); /* whether any was lost meanwhile */
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Nobody changes these. */
static bool is_of_the_volume(const struct rbx_reader *reader, const struct rbx_wire_record *record)
{
	const struct rbx_wire_record *first = &reader->record;

	return record->volume_id == first->volume_id && record->slab_bytes == first->slab_bytes &&
	       record->replicas == first->replicas &&
	       !((record->flags ^ first->flags) & (RBX_WIRE_CHECKSUMS | RBX_WIRE_REMOVED)) &&
	       record->size_bytes % RBX_PAGE_BYTES == 0;
}

static bool record_take(struct rbx_reader_server *server, const struct rbx_wire_record *record)
{
	struct rbx_membership membership;

	rbx_record_get_membership(record, &membership);
	if (!is_of_the_volume(server->reader, record) || rbx_membership_fault(&membership))
		return false;
	heard_of(server)->membership = membership;
	heard_of(server)->copies = record->copies;
	heard_of(server)->has_lost = record->flags & RBX_WIRE_LOST;
	server->size_bytes = record->size_bytes;
	return true;
}

static void looked(struct rbx_reader_server *server)
{
	const struct rbx_wire_volume_reading *reading = &server->message.reading;
	bool is_first = !server->has_answered;

	server->look_at_ns = server->asked_ns + RBX_READER_LOOK_NS;
	if (!record_take(server, &reading->record))
		return;
	server->has_answered = heard_of(server)->is_there = true;
	if (is_first || reading->losses_count != server->losses_count) {
		heard_of(server)->since_ns = rbx_now_ns();
		heard_of(server)->all_ns = 0;
	} else if (server->has_labels) {
		heard_of(server)->all_ns = RBX_MAX(heard_of(server)->all_ns, server->walked_ns);
	}
	server->losses_count = reading->losses_count;
	server->changes_count = reading->changes_count;
	if (server->has_labels && server->changes_count == server->walked_changes_count) {
		heard_of(server)->seen_ns = server->asked_ns;
		heard_of(server)->all_ns = server->asked_ns;
	} else if (!server->has_labels ||
		   rbx_now_ns() - server->walked_ns >= LOOK_SPACE_NS) {
		if (!server->reader->is_ending)
			walk_begin(server);
	} else {
		server->look_at_ns = server->asked_ns + LOOK_SPACE_NS;
	}
}

static void refused(struct rbx_reader_server *server)
{
	server->look_at_ns = rbx_now_ns() + RBX_READER_LOOK_NS;
}

/* False: there is none yet. Else it may have been asked again. */
static bool answer_take(struct rbx_reader_server *server)
{
	struct rbx_loan none;
	int err = rbx_session_answer(rbx_peer_session(server->peer), &server->ask, &none);

	if (err == -EAGAIN)
		return false;
	server->is_out = false;
	if (err)
		refused(server);
	else if (server->message.type == RBX_WIRE_VOLUME_READING)
		looked(server);
	else if (!walk_goes_on(server))
		walk_end(server);
	return true;
}

/* ---- What may be believed -------------------------------------------------------------------- */

/* If enough servers to open it say so: a size that was proposed only may never be true. */
static void grow(struct rbx_reader *reader)
{
	struct rbx_volume_map *map = reader->volume->control.flow.map;
	const struct rbx_membership *now = &reader->reading.membership;
	struct rbx_member_set tell = { .count = 0 };
	uint64_t size_bytes = UINT64_MAX;

	for (uint32_t i = 0; i < RBX_LOAD_ACQUIRE(&reader->server_count); i++) {
		const struct rbx_reading_server *heard = &reader->heard[i];

		if (!heard->is_there || heard->membership.epoch != now->epoch ||
		    heard->membership.version != now->version)
			continue;
		rbx_member_set_add(&tell, heard->incarnation);
		size_bytes = RBX_MIN(size_bytes, reader->servers[i].size_bytes);
	}
	if (tell.count && size_bytes > rbx_volume_map_bytes(map) &&
	    rbx_membership_can_open(now, &tell))
		(void)rbx_volume_map_grow(map, size_bytes);
}

static void gone_tell(struct rbx_reader *reader, bool is_gone)
{
	const struct rbx_event event = {
		.kind = is_gone ? RBX_EVENT_STOPPED : RBX_EVENT_GOES_ON,
		.server = "",
		.reason = is_gone ? "the volume was removed; reads end with -ENOENT" :
				    "only servers that it has left had removed the volume",
	};

	rbx_events_put(&reader->volume->events, &event);
}

static uint64_t until(uint64_t at_ns)
{
	return at_ns ? at_ns + RBX_READER_LAG_NS : 0;
}

/* Under the lock. */
static void judgement_publish(struct rbx_reader *reader, uint32_t count)
{
	struct rbx_member_set gone = { .count = 0 };

	for (uint32_t i = 0; i < count; i++) {
		struct rbx_reader_server *server = &reader->servers[i];
		uint64_t at_ns = rbx_reading_server_at(&reader->reading, heard_of(server));

		server->is_in = rbx_reading_is_in(&reader->reading, heard_of(server));
		server->until_ns = heard_of(server)->seen_ns > server->failed_ns ? until(at_ns) : 0;
		if (server->gone_incarnation)
			rbx_member_set_add(&gone, server->gone_incarnation);
	}
	reader->zeros_until_ns = until(reader->reading.zeros_at_ns);
	reader->has_lost = reader->reading.has_lost;
	reader->is_gone = rbx_reading_is_gone(&reader->reading, &gone);
}

static void judge(struct rbx_reader *reader)
{
	uint32_t count = RBX_LOAD_ACQUIRE(&reader->server_count);
	uint64_t heard_before_ns = reader->reading.heard_ns, now_ns = rbx_now_ns();
	bool was_gone, is_gone;

	rbx_reading_judge(&reader->reading, reader->heard, count,
			  now_ns - RBX_MIN(now_ns, RBX_READER_LAG_NS), now_ns);
	rbx_lock(&reader->lock);
	was_gone = reader->is_gone;
	judgement_publish(reader, count);
	is_gone = reader->is_gone;
	if (reader->reading.heard_ns != heard_before_ns) /* what was told before counts no more */
		reader->wants_looks = true;
	rbx_unlock(&reader->lock);
	grow(reader);
	if (is_gone != was_gone)
		gone_tell(reader, is_gone);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Whether it may be asked now; then it is not closed meanwhile. */
static bool server_take(struct rbx_reader_server *server)
{
	struct rbx_reader *reader = server->reader;
	bool is_there;

	rbx_lock(&reader->lock);
	is_there = server->peer && !server->is_down;
	server->is_asked = is_there;
	if (server->is_new || !is_there) {
		*heard_of(server) = (struct rbx_reading_server){ .is_there = false };
		server->has_answered = server->has_labels = false;
	}
	if (is_there && server->is_new) {
		heard_of(server)->incarnation = rbx_peer_incarnation(server->peer);
		server->is_new = false;
		server->look_at_ns = 0;
	}
	rbx_unlock(&reader->lock);
	return is_there;
}

static void server_release(struct rbx_reader_server *server)
{
	rbx_lock(&server->reader->lock);
	server->is_asked = false;
	rbx_unlock(&server->reader->lock);
}

static void server_step(struct rbx_reader_server *server, bool all)
{
	while (server->is_out && answer_take(server))
		;
	if (all)
		server->look_at_ns = RBX_MIN(server->look_at_ns, server->asked_ns + LOOK_SPACE_NS);
	if (!server->is_out && server_take(server) && !server->reader->is_ending &&
	    rbx_now_ns() >= server->look_at_ns)
		look_ask(server);
	while (server->is_out && answer_take(server)) /* an error may be known at once */
		;
	if (!server->is_out)
		server_release(server);
}

/* Returns when the next server is to be asked. */
static uint64_t servers_step(struct rbx_reader *reader)
{
	uint64_t next_ns = rbx_now_ns() + RBX_READER_LOOK_NS;
	bool all;

	rbx_lock(&reader->lock);
	all = reader->wants_looks;
	reader->wants_looks = false;
	rbx_unlock(&reader->lock);
	for (uint32_t i = 0; i < RBX_LOAD_ACQUIRE(&reader->server_count); i++) {
		struct rbx_reader_server *server = &reader->servers[i];

		server_step(server, all);
		if (!server->is_out && heard_of(server)->is_there)
			next_ns = RBX_MIN(next_ns, server->look_at_ns);
	}
	return next_ns;
}

static bool any_is_out(const struct rbx_reader *reader)
{
	for (uint32_t i = 0; i < reader->server_count; i++)
		if (reader->servers[i].is_out)
			return true;
	return false;
}

/* Until it is woken, told to end, or so late. Returns whether it is to end. */
static bool wait_until(struct rbx_reader *reader, uint64_t until_ns)
{
	bool stop;

	rbx_monitor_enter(&reader->monitor);
	while (!reader->is_woken && reader->stop == reader->is_ending && rbx_now_ns() < until_ns)
		rbx_monitor_wait_until(&reader->monitor, until_ns);
	reader->is_woken = false;
	stop = reader->stop;
	rbx_monitor_leave(&reader->monitor);
	return stop;
}

/* A round of all servers. Reads that wait are tried again at each, as time may be over for them. */
static uint64_t round_make(struct rbx_reader *reader)
{
	uint64_t until_ns = servers_step(reader);

	judge(reader);
	rbx_reader_go_on(reader);
	return until_ns;
}

static void *watch_main(void *argument)
{
	struct rbx_reader *reader = argument;

	while (!wait_until(reader, round_make(reader)))
		;
	/* An ask exists until it is over; a server that is silent is given up in time. */
	reader->is_ending = true;
	while (any_is_out(reader)) {
		(void)round_make(reader);
		(void)wait_until(reader, rbx_now_ns() + RBX_READER_LOOK_NS);
	}
	return NULL;
}

void rbx_reader_wake(struct rbx_reader *reader)
{
	rbx_monitor_enter(&reader->monitor);
	reader->is_woken = true;
	rbx_monitor_wake(&reader->monitor);
	rbx_monitor_leave(&reader->monitor);
}

int rbx_reader_watch_start(struct rbx_reader *reader)
{
	int err = rbx_thread_start(&reader->thread, "reader", watch_main, reader);

	reader->has_thread = !err;
	return err ? rbx_error(err, "cannot start the thread that watches the volume") : 0;
}

void rbx_reader_watch_stop(struct rbx_reader *reader)
{
	if (!reader->has_thread)
		return;
	rbx_monitor_enter(&reader->monitor);
	reader->stop = true;
	rbx_monitor_wake(&reader->monitor);
	rbx_monitor_leave(&reader->monitor);
	rbx_thread_join(&reader->thread);
	reader->has_thread = false;
}
