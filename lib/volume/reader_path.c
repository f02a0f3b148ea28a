/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader_path.c - reads of a volume that is only read, see reader.h.
 *
 * A piece has one part, for its data, and with checksums another one, which reads the checksums
 * that the server keeps beside them, to where those of a write would be. It ends when both are
 * done. If they do not fit, the page may be being written, and is read again, by turns at each
 * server.
 *
 * Of a piece that is under way flight_mask says which parts are, tried_mask which copies have
 * failed, `rebuild` how often its checksums did not fit, and `granules` when it began. It stays
 * IDLE for the pool.
 *
 * Nothing here allocates or blocks.
 */
#include "core/checksum.h"
#include "core/server_runs.h"
#include "core/status.h"
#include "core/tails.h"
#include "lib/volume/reader.h"

#define PART_OF_DATA 1u
#define PART_OF_CHECKSUMS RBX_PART_OF_TAIL

enum outcome {
	SENT,
	ENDED, /* its status is final */
	WAITS, /* nobody can serve it now */
};

static struct rbx_fragment *parts_done(struct rbx_fragment *list);

static struct rbx_reader *reader_of(const struct rbx_piece *piece)
{
	struct rbx_flow *flow = piece->owner;

	return rbx_volume_of_flow(flow)->reader;
}

static bool has_checksums(const struct rbx_reader *reader)
{
	return reader->volume->options.checksums;
}

/* Twice the peer timeout, as a first write that nobody has memory for; and until looks count. */
static uint64_t patience_ns(const struct rbx_reader *reader)
{
	return 2 * rbx_context_options(reader->volume->ctx)->peer_timeout_ms * 1000000ull +
	       RBX_READER_LAG_NS;
}

/* ---- One piece, under the lock ------------------------------------------------------------- */

static void part_fill(struct rbx_piece *piece, struct rbx_part *part,
		      const struct rbx_reader_copy *copy, uint64_t offset_bytes,
		      uint32_t length_bytes)
{
	part->server = (uint16_t)(copy->server - 1);
	part->fragment = (struct rbx_fragment){
		.direction = RBX_DIRECTION_READ,
		.flags = piece->fragment_flags & RBX_FRAGMENT_URGENT,
		.rkey = copy->rkey,
		.remote_addr = copy->remote_addr + offset_bytes,
		.local_addr = part->fragment.local_addr,
		.length_bytes = length_bytes,
		.done = parts_done,
	};
}

static void piece_aim(struct rbx_reader *reader, struct rbx_piece *piece, uint32_t slot,
		      struct rbx_server_runs *runs)
{
	const struct rbx_reader_copy *copy = &rbx_reader_copies(reader, piece->slab_index)[slot];
	struct rbx_reader_server *server = &reader->servers[copy->server - 1];
	const struct rbx_slab_shape *shape = &reader->volume->control.flow.map->shape;
	struct rbx_part *part = &piece->parts[0];

	piece->send_mask = (uint8_t)(1u << slot);
	piece->flight_mask = PART_OF_DATA;
	part->fragment.local_addr = piece->local_addr;
	part_fill(piece, part, copy, piece->offset_bytes, piece->length_bytes);
	part->fragment.flags = piece->fragment_flags & (uint8_t)~RBX_FRAGMENT_FENCE;
	part->fragment.lkey = piece->lkey;
	rbx_server_runs_add(runs, part->server, &part->fragment);
	server->parts_count++;
	if (!has_checksums(reader))
		return;
	piece->flight_mask |= PART_OF_CHECKSUMS;
	part = rbx_tail_part(piece, 0);
	part_fill(piece, part, copy, rbx_tail_offset(shape, rbx_piece_page(piece)),
		  rbx_piece_pages_count(piece) * RBX_WIRE_CHECKSUM_BYTES);
	rbx_server_runs_add(runs, part->server, &part->fragment);
	server->parts_count++;
}

static bool may_be_read(const struct rbx_reader_server *server, uint64_t now_ns)
{
	return server->peer && !server->is_down && now_ns < server->until_ns;
}

/* Finds out who serves it. */
static enum outcome piece_try(struct rbx_reader *reader, struct rbx_piece *piece, uint64_t now_ns,
			      struct rbx_server_runs *runs)
{
	const struct rbx_reader_copy *copies = rbx_reader_copies(reader, piece->slab_index);
	uint32_t first = piece->slab_index + piece->rebuild;
	bool any_has = false;

	piece->status = reader->is_gone ? -ENOENT : 0;
	if (piece->status)
		return ENDED;
	for (uint32_t i = 0; i < RBX_SLOTS_MAX; i++) {
		uint32_t slot = (first + i) % RBX_SLOTS_MAX;
		const struct rbx_reader_server *server;

		if (!copies[slot].server)
			continue;
		server = &reader->servers[copies[slot].server - 1];
		any_has |= server->is_in;
		if (piece->tried_mask >> slot & 1 || !may_be_read(server, now_ns))
			continue;
		piece_aim(reader, piece, slot, runs);
		return SENT;
	}
	if (any_has || now_ns >= reader->zeros_until_ns)
		return WAITS;
	if (reader->has_lost)
		piece->status = -EIO;
	else
		piece->reads_zeros = true;
	return ENDED;
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void runs_send(struct rbx_reader *reader, struct rbx_server_runs *runs)
{
	for (uint32_t i = 0; i < runs->count; i++) {
		struct rbx_server_run *run = &runs->all[i];

		run->last->next = NULL;
		/* It stays while parts are under way to it. */
		rbx_peer_submit(reader->servers[run->server].peer, rbx_fragment_of(run->head.next),
				rbx_fragment_of(run->last));
	}
	rbx_server_runs_begin(runs);
}

static void piece_wait(struct rbx_reader *reader, struct rbx_piece *piece)
{
	piece->tried_mask = 0;
	rbx_piece_list_add(&reader->waiting, piece);
	reader->wants_looks = true;
}

/* Tries all of a list, which is empty afterwards. Those that have ended are put on another one.
 * Returns whether any waits: then the thread that watches is to be woken, unless it is the
 * caller. */
static bool pieces_try(struct rbx_reader *reader, struct rbx_piece_list *pieces,
		       struct rbx_piece_list *ended)
{
	uint64_t now_ns = rbx_now_ns();
	struct rbx_server_runs runs;
	bool any_waits = false;
	struct rbx_piece *piece;

	rbx_server_runs_begin(&runs);
	while (pieces->first) {
		rbx_lock(&reader->lock);
		while (rbx_server_runs_have_room(&runs) && (piece = rbx_piece_list_take(pieces))) {
			enum outcome outcome = piece_try(reader, piece, now_ns, &runs);

			any_waits |= outcome == WAITS;
			if (outcome == WAITS)
				piece_wait(reader, piece);
			else if (outcome == ENDED)
				rbx_piece_list_add(ended, piece);
		}
		rbx_unlock(&reader->lock);
		runs_send(reader, &runs);
	}
	return any_waits;
}

/* Has the poller end them. */
static void end_later(struct rbx_reader *reader, struct rbx_piece_list *ended)
{
	struct rbx_flow *flow = &reader->volume->control.flow;
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(ended))) {
		piece->flight_mask = 0;
		piece->parts[0].fragment.done = parts_done;
		piece->parts[0].fragment.node.next = NULL;
		flow->ops->end_later(flow, &piece->parts[0].fragment);
	}
}

void rbx_reader_start(struct rbx_reader *reader, struct rbx_piece_list *pieces)
{
	struct rbx_piece_list ended = { 0 };
	uint64_t now_ns = rbx_now_ns();
	struct rbx_node *node;

	for (node = pieces->first; node; node = node->next) {
		struct rbx_piece *piece = rbx_piece_of(node);

		piece->tried_mask = 0;
		piece->rebuild = 0;
		piece->reads_zeros = false;
		piece->granules = now_ns;
	}
	if (pieces_try(reader, pieces, &ended))
		rbx_reader_wake(reader);
	end_later(reader, &ended);
}

void rbx_reader_go_on(struct rbx_reader *reader)
{
	struct rbx_piece_list waiting, again = { 0 }, ended = { 0 };
	uint64_t now_ns = rbx_now_ns();
	struct rbx_piece *piece;

	rbx_lock(&reader->lock);
	waiting = reader->waiting;
	reader->waiting.first = NULL;
	rbx_unlock(&reader->lock);
	while ((piece = rbx_piece_list_take(&waiting))) {
		if (now_ns - piece->granules < patience_ns(reader)) {
			rbx_piece_list_add(&again, piece);
			continue;
		}
		piece->status = -EIO;
		rbx_piece_list_add(&ended, piece);
	}
	(void)pieces_try(reader, &again, &ended);
	end_later(reader, &ended);
}

/* ---- Parts that are done --------------------------------------------------------------------- */

static bool checksums_fit(struct rbx_piece *piece)
{
	const char *memory = (const char *)(uintptr_t)piece->local_addr;
	const uint32_t *checksums = rbx_piece_checksums(piece);

	for (uint32_t i = 0; i < rbx_piece_pages_count(piece); i++)
		if (checksums[i] != rbx_checksum_of(memory + (size_t)i * RBX_PAGE_BYTES))
			return false;
	return true;
}

/* A key has ended, or a server was given up: what is noted of it is not believed before it was
 * asked once more. */
static void note_failed(struct rbx_reader *reader, struct rbx_part *part)
{
	struct rbx_reader_server *server = &reader->servers[part->server];

	server->failed_ns = rbx_now_ns();
	server->until_ns = 0;
	reader->wants_looks = true;
}

/* Under the lock. Whether all parts of its piece are done. */
static bool part_end(struct rbx_reader *reader, struct rbx_part *part)
{
	struct rbx_piece *piece = part->piece;
	int status = part->fragment.status;

	reader->servers[part->server].parts_count--;
	piece->flight_mask &= (uint8_t)~part->bit;
	if (status && rbx_status_class(status) != RBX_STATUS_LOCAL)
		note_failed(reader, part);
	if (status && !piece->status)
		piece->status = status;
	return !piece->flight_mask;
}

/* All its parts are done. Whether it has ended; else it is tried again. */
static bool piece_end(struct rbx_reader *reader, struct rbx_piece *piece)
{
	struct rbx_flow *flow = &reader->volume->control.flow;

	if (piece->status) {
		if (rbx_status_class(piece->status) == RBX_STATUS_LOCAL)
			return true;
		piece->tried_mask |= piece->send_mask;
		RBX_ADD_RELAXED(&flow->counters->failovers, 1);
		return false;
	}
	if (!has_checksums(reader) || checksums_fit(piece))
		return true;
	if (++piece->rebuild < RBX_READER_CHECKS_MAX)
		return false;
	RBX_ADD_RELAXED(&flow->counters->checksum_errors, 1);
	piece->status = -EIO;
	return true;
}

static bool is_part(const struct rbx_fragment *fragment)
{
	return fragment && fragment->done == parts_done;
}

static struct rbx_fragment *parts_done(struct rbx_fragment *list)
{
	struct rbx_reader *reader = reader_of(rbx_part_of(list)->piece);
	struct rbx_piece_list ended = { 0 }, again = { 0 };
	struct rbx_piece *piece;
	bool is_over;

	for (; is_part(list);) {
		struct rbx_part *part = rbx_part_of(list);

		if (reader_of(part->piece) != reader)
			break; /* of another volume */
		piece = part->piece;
		list = rbx_fragment_next(list);
		is_over = !piece->flight_mask; /* of end_later() */
		if (!is_over) {
			bool is_last;

			rbx_lock(&reader->lock);
			is_last = part_end(reader, part);
			rbx_unlock(&reader->lock);
			if (!is_last)
				continue;
			is_over = piece_end(reader, piece);
		}
		rbx_piece_list_add(is_over ? &ended : &again, piece);
	}
	if (pieces_try(reader, &again, &ended))
		rbx_reader_wake(reader);
	if (ended.first)
		reader->volume->control.flow.ops->ended(&reader->volume->control.flow, &ended);
	return list;
}
