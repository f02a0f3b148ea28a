/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_world.c - see volume_world.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/volume_world.h"

#include "core/slab_rebuild.h"
#include "core/slab_spare.h"
#include "core/slab_way.h"
#include "tests/core/volume_network.h"

uint64_t seeds_count = 400;

static struct rbx_fragment *unused_done(struct rbx_fragment *fragment)
{
	return rbx_fragment_next(fragment);
	fail_msg("the world carries parts out itself");
}

/* ---- The host -------------------------------------------------------------*/

static void piece_ended(struct world *world, struct rbx_piece *piece);

static void todo_do(struct world *world, struct rbx_piece_list *todo)
{
	struct rbx_piece *piece;
	uint32_t slot;

	while ((piece = rbx_piece_list_take(todo))) {
		if (piece->state == RBX_PIECE_IDLE) {
			piece_ended(world, piece);
			continue;
		}
		if (piece->kind == RBX_PIECE_WRITE && rbx_slab_shape(piece->slab)->checksums)
			rbx_checksum_compute(
				piece,
				(const void *)(uintptr_t)piece->local_addr);
		for (slot = 0; piece->send_mask >> slot; slot++)
			if (piece->send_mask >> slot & 1)
				world->sent[world->sent_count++] =
					&piece->parts[slot];
	}
}

static void copy_ended(struct world *world, struct world_piece *own)
{
	struct rbx_slab *slab = own->piece->slab;
	struct rbx_piece_list todo = { 0 };

	if (rbx_slab_copy_done(slab, own->piece)) {
		world->rebuilt_count++;
	} else if (rbx_slab_copy_next(slab, own->piece)) {
		rbx_slab_start(slab, rbx_slab_group(slab), own->piece, &todo);
		todo_do(world, &todo);
		return;
	}
	own->busy = false;
	own->copying = false;
}

static void piece_ended(struct world *world, struct rbx_piece *piece)
{
	struct world_piece *own = piece->user;

	assert_true(own->busy);
	if (own->copying) {
		copy_ended(world, own);
		return;
	}
	own->busy = false;
	world->ended_count++;
	world->failed_count += piece->status == -EIO;
	world->failed_local_count += piece->status == -EFAULT;
	assert_true(piece->status == 0 || piece->status == -EIO ||
		    piece->status == -EFAULT);
	if (piece->reads_zeros)
		memset(own->buf, 0, piece->length_bytes);
	if (piece->kind == RBX_PIECE_WRITE)
		history_write_end(&world->history, own->write_number,
				  piece->status == 0);
	else if (piece->status == 0)
		assert_true(history_read_is_legal(
			&world->history, own->offset, piece->length_bytes,
			own->floors, own->buf));
}

static struct world_piece *piece_take(struct world *world)
{
	uint32_t i;

	for (i = 0; i < WORLD_PIECES; i++)
		if (!world->pieces[i].busy)
			break;
	if (i == WORLD_PIECES)
		return NULL;
	world->pieces[i].busy = true;
	return &world->pieces[i];
}

bool world_submit(struct world *world, enum rbx_piece_kind kind,
		  uint64_t offset, uint32_t length)
{
	struct world_piece *own = piece_take(world);
	struct rbx_piece_list todo = { 0 };
	struct rbx_slab *slab = rbx_volume_map_slab(world->map, offset);

	if (!own)
		return false;
	own->offset = offset;
	own->piece->kind = (uint8_t)kind;
	assert_int_equal(rbx_volume_map_aim(world->map, own->piece, offset,
					    length),
			 length);
	if (kind == RBX_PIECE_WRITE)
		own->write_number = history_write_begin(
			&world->history, offset, length, own->buf);
	else
		history_read_begin(&world->history, offset, length,
				   own->floors);
	rbx_slab_start(slab, rbx_slab_group(slab), own->piece, &todo);
	todo_do(world, &todo);
	return true;
}

bool world_submit_random(struct world *world)
{
	uint32_t unit = world->map->shape.checksums ? RBX_PAGE_BYTES :
						      HISTORY_UNIT_BYTES;
	uint32_t units = WORLD_CELL_BYTES / unit;
	uint32_t cells =
		(uint32_t)(world->map->size_bytes / WORLD_CELL_BYTES);
	uint32_t first = rbx_random_below(&world->random, units);
	uint32_t count = 1 + rbx_random_below(&world->random, units - first);
	/* Few cells are hot, so that requests meet. */
	uint32_t cell = rbx_random_below(
		&world->random, world_chance(world, 700) ? 2 : cells);
	enum rbx_piece_kind kind = world_chance(world, 500) ? RBX_PIECE_READ :
							      RBX_PIECE_WRITE;

	return world_submit(world, kind,
			    (uint64_t)cell * WORLD_CELL_BYTES + first * unit,
			    count * unit);
}

bool world_step(struct world *world)
{
	struct rbx_piece_list todo = { 0 };
	struct rbx_part *part;
	struct rbx_slab *slab;
	int32_t status;
	uint32_t i;

	if (!world->sent_count)
		return false;
	i = rbx_random_below(&world->random, world->sent_count);
	part = world->sent[i];
	world->sent[i] = world->sent[--world->sent_count];
	slab = part->piece->slab;
	status = world_carry_out(world, part);
	if (!status && part->piece->state == RBX_PIECE_READING &&
	    rbx_slab_shape(slab)->checksums &&
	    rbx_checksum_mismatches(
		    rbx_slab_checksums(slab), part->piece,
		    (const void *)(uintptr_t)part->piece->local_addr,
		    &part->piece->good_pages)) {
		status = -EBADMSG;
		world->mismatch_count += part->piece->cell != NULL;
	}
	rbx_slab_done(slab, rbx_slab_group(slab), part, status, &todo);
	todo_do(world, &todo);
	return true;
}

/* Which server to ask, or -1. */
static int place(struct world *world, const struct rbx_slab *slab)
{
	struct rbx_server_set not_servers = { 0 };
	uint32_t drawn[2], count;

	(void)rbx_slab_servers(slab, &not_servers);
	count = rbx_volume_map_draw(world->map, &not_servers, drawn);
	if (count < 2)
		return count ? (int)drawn[0] : -1;
	return (int)drawn[rbx_placement_better(
		world->servers[drawn[0]].free_bytes,
		world->servers[drawn[1]].free_bytes)];
}

static bool tend_borrow(struct world *world, struct rbx_slab *slab,
			enum rbx_replica_state state)
{
	struct rbx_loan loan;
	uint32_t slot;
	int server;

	server = place(world, slab);
	if (server < 0)
		return false;
	slot = rbx_slab_borrow(slab, (uint32_t)server);
	if (world_server_lend(world, (uint32_t)server, &loan)) {
		rbx_slab_refused(slab, slot);
		rbx_slab_return_record(slab, &world->map->loans);
		return false;
	}
	rbx_slab_lent(slab, slot, &loan, state);
	rbx_loan_index_add(&world->map->loans, rbx_replica_number(slab, slot));
	return true;
}

/* A discard comes while memory is borrowed, sometimes. */
static bool tend_lend(struct world *world, struct rbx_slab *slab)
{
	struct rbx_piece_list todo = { 0 };
	bool lent = true;
	uint32_t i;

	if (rbx_slab_wants_pages(slab))
		rbx_slab_lend_pages(slab, malloc(rbx_lost_pages_size(
						  rbx_slab_shape(slab)->slab_shift)));
	rbx_slab_place(slab);
	for (i = 0; i < world->map->shape.replicas && lent; i++) {
		lent = tend_borrow(world, slab, RBX_REPLICA_LIVE);
		if (rbx_slab_shape(slab)->on_demand && world_chance(world, 100))
			world_discard(world, rbx_slab_index(slab));
	}
	world->revived_count += lent && slab->has_holes;
	rbx_slab_begin(slab, lent ? 0 : -ENOSPC, &todo);
	todo_do(world, &todo);
	return true;
}

static bool tend_copy(struct world *world, struct rbx_slab *slab)
{
	struct rbx_piece_list todo = { 0 };
	struct world_piece *own;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		own = piece_take(world);
		if (!own)
			return i > 0;
		own->piece->kind = RBX_PIECE_COPY;
		if (!rbx_slab_copy_next(slab, own->piece)) {
			own->busy = false;
			return i > 0;
		}
		own->copying = true;
		rbx_slab_start(slab, rbx_slab_group(slab), own->piece, &todo);
		todo_do(world, &todo);
	}
	return true;
}

bool world_tend(struct world *world, uint32_t index)
{
	struct rbx_slab *slab = rbx_slab_at(&world->map->shape, index);
	struct rbx_loan loan;
	uint32_t server, number;

	switch (rbx_slab_task(slab)) {
	case RBX_TASK_GIVE_BACK:
		number = rbx_replica_number(
			slab, rbx_slab_give_back(slab, &server, &loan));
		rbx_loan_index_remove(&world->map->loans, number);
		world_server_take_back(world, server, &loan);
		return true;
	case RBX_TASK_RETURN_RECORD:
		rbx_slab_return_record(slab, &world->map->loans);
		world->settled_count++;
		return true;
	case RBX_TASK_BORROW:
		return rbx_slab_record_give(slab) &&
		       tend_borrow(world, slab, RBX_REPLICA_REBUILDING);
	case RBX_TASK_LEND:
		return tend_lend(world, slab);
	case RBX_TASK_FREE_PAGES:
		free(rbx_slab_take_pages(slab));
		return true;
	case RBX_TASK_COPY:
		return rbx_slab_record_give(slab) && tend_copy(world, slab);
	case RBX_TASK_LABEL: /* of named volumes */
	case RBX_TASK_UNLABEL:
	case RBX_TASK_NONE:
		break;
	}
	return false;
}

void world_settle(struct world *world)
{
	bool moved = true;
	uint32_t i;

	while (moved) {
		moved = world_step(world);
		for (i = 0; i < world->map->slab_count; i++)
			moved |= world_tend(world, i);
	}
	for (i = 0; i < WORLD_PIECES; i++)
		assert_false(world->pieces[i].busy);
}

/* ---- What happens to it ---------------------------------------------------*/

void world_server_down(struct world *world, uint32_t server)
{
	uint32_t i;

	world->servers[server].down = true;
	rbx_volume_map_server_down(world->map, server);
	for (i = 0; i < world->map->slab_count; i++)
		rbx_slab_server_down(rbx_slab_at(&world->map->shape, i), server);
}

void world_evict(struct world *world, uint32_t slab_index, uint32_t slot)
{
	struct rbx_slab *slab = rbx_slab_at(&world->map->shape, slab_index);
	const struct rbx_replica *replica;
	bool stands_in = rbx_slab_stands_in(slab, slot);

	if (!(slab->write_mask >> slot & 1))
		return;
	replica = rbx_slab_replica(slab, slot);
	assert_int_equal(rbx_slab_evict(slab, rbx_replica_server(replica),
					replica->slab_id, replica->epoch),
			 !stands_in);
}

void world_discard(struct world *world, uint32_t slab_index)
{
	rbx_slab_discard(rbx_slab_at(&world->map->shape, slab_index));
	history_discard(&world->history,
			(uint64_t)slab_index * WORLD_SLAB_BYTES,
			WORLD_SLAB_BYTES);
}

void world_live(struct world *world, uint32_t steps, uint32_t evict_permille)
{
	uint32_t i;

	for (i = 0; i < steps; i++) {
		uint32_t dice = rbx_random_below(&world->random, 1000);
		uint32_t slab = rbx_random_below(&world->random,
						 world->map->slab_count);

		if (dice < 350)
			world_submit_random(world);
		else if (dice < 900)
			world_step(world);
		else
			world_tend(world, slab);
		if (rbx_random_below(&world->random, 1000) < evict_permille)
			world_evict(world, slab,
				    rbx_random_below(&world->random,
						     world->map->shape.slots));
	}
}

/* ---- Beginning and end ----------------------------------------------------*/

static void slabs_lend(struct world *world)
{
	uint32_t i, replica;

	for (i = 0; i < world->map->slab_count; i++) {
		struct rbx_slab *slab = rbx_slab_at(&world->map->shape, i);

		for (replica = 0; replica < world->map->shape.replicas;
		     replica++) {
			struct rbx_loan loan;
			int server = place(world, slab);
			uint32_t slot;

			assert_true(server >= 0);
			slot = rbx_slab_borrow(slab, (uint32_t)server);
			assert_int_equal(world_server_lend(world, (uint32_t)server,
							   &loan),
					 0);
			rbx_slab_lent(slab, slot, &loan, RBX_REPLICA_LIVE);
			rbx_loan_index_add(&world->map->loans,
					   rbx_replica_number(slab, slot));
		}
	}
}

void world_open(struct world *world, const struct world_options *options)
{
	uint32_t cell_bytes = options->cell_bytes ? options->cell_bytes : WORLD_CELL_BYTES;
	struct rbx_volume_shape shape = {
		.size_bytes = (uint64_t)options->slabs * WORLD_SLAB_BYTES,
		.slab_bytes = WORLD_SLAB_BYTES,
		.fragment_bytes = cell_bytes,
		.replicas = options->replicas,
		.checksums = options->checksums,
		.on_demand = options->on_demand,
	};
	uint32_t i;

	memset(world, 0, sizeof(*world));
	assert_int_equal(rbx_volume_shape_check(&shape), 0);
	world->map = rbx_volume_map_init(calloc(1, rbx_volume_map_size(&shape)),
					 &shape, options->seed + 1);
	rbx_random_seed(&world->random, options->seed);
	history_init(&world->history, shape.size_bytes);
	for (i = 0; i < options->servers; i++)
		world_server_add(world);
	for (i = 0; i < WORLD_PIECES; i++) {
		struct world_piece *own = &world->pieces[i];

		own->piece = calloc(1, rbx_piece_size(options->replicas + 1,
						      cell_bytes / RBX_PAGE_BYTES));
		rbx_piece_init(own->piece, options->replicas + 1,
			       cell_bytes / RBX_PAGE_BYTES, world,
			       unused_done);
		own->piece->user = own;
		own->buf = malloc(cell_bytes);
		own->piece->local_addr = (uintptr_t)own->buf;
		own->floors = calloc(cell_bytes / HISTORY_UNIT_BYTES,
				     sizeof(*own->floors));
	}
	if (!options->on_demand)
		slabs_lend(world);
}

void world_close(struct world *world)
{
	uint32_t i, area;

	world->fail_local_permille = 0;
	world->fail_remote_permille = 0;
	while (world_step(world))
		;
	for (i = 0; i < world->map->slab_count; i++) {
		rbx_slab_abandon(rbx_slab_at(&world->map->shape, i));
		while (world_tend(world, i))
			;
		free(rbx_slab_take_pages(rbx_slab_at(&world->map->shape, i)));
		assert_false(rbx_slab_has_memory(rbx_slab_at(&world->map->shape, i)));
	}
	for (i = 0; i < world->server_count; i++) {
		for (area = 0; area < WORLD_AREAS; area++)
			assert_int_equal(world->servers[i].keys[area], 0);
		free(world->servers[i].memory);
	}
	for (i = 0; i < WORLD_PIECES; i++) {
		assert_false(world->pieces[i].busy);
		free(world->pieces[i].piece);
		free(world->pieces[i].buf);
		free(world->pieces[i].floors);
	}
	history_free(&world->history);
	free(world->map);
}
