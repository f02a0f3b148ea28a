/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scripted_host.c - see scripted_host.h. What the flow and the upkeep ask of a host is in
 * scripted_host_ops.c.
 */
#include "tests/core/scripted_host.h"

#include "tests/core/scripted_host_ops.h"

/* ---- The network ------------------------------------------------------------*/

static int32_t carry_out(struct host *host, const struct rbx_part *part)
{
	const struct rbx_fragment *fragment = &part->fragment;
	const struct host_server *server = &host->servers[part->server];
	void *remote = (void *)(uintptr_t)fragment->remote_addr;
	void *local = host_memory_at(fragment->local_addr);
	uint32_t area;

	if (server->down)
		return -EHOSTUNREACH;
	if (host->fails_here)
		return host->fails_here;
	if (part->bit >= RBX_PART_OF_TAIL) /* these servers have no room for tails */
		return 0;
	for (area = 0; server->keys[area] != fragment->rkey; area++)
		if (area == HOST_AREAS - 1)
			return -EREMOTEIO;
	if (fragment->direction == RBX_DIRECTION_READ)
		memcpy(local, remote, fragment->length_bytes);
	else
		memcpy(remote, local, fragment->length_bytes);
	return 0;
}

bool host_poll(struct host *host)
{
	struct rbx_fragment *sent = host->sent_first, *later = host->later_first;
	struct rbx_fragment *fragment;

	host->sent_first = NULL;
	host->later_first = NULL;
	for (fragment = sent; fragment; fragment = rbx_fragment_next(fragment))
		fragment->status = carry_out(host, rbx_part_of(fragment));
	if (sent)
		sent->done(sent);
	if (later)
		later->done(later);
	return sent || later;
}

/* Takes one of what was sent out of its list. */
static struct rbx_fragment *take_sent(struct host *host, uint32_t nth)
{
	struct rbx_fragment *fragment = host->sent_first, *before = NULL;

	for (; nth && rbx_fragment_next(fragment); nth--) {
		before = fragment;
		fragment = rbx_fragment_next(fragment);
	}
	if (before)
		before->node.next = fragment->node.next;
	else
		host->sent_first = rbx_fragment_next(fragment);
	if (host->sent_last == fragment)
		host->sent_last = before;
	fragment->node.next = NULL;
	return fragment;
}

bool host_poll_one(struct host *host, uint32_t nth, int32_t status,
		   bool is_carried_out)
{
	struct rbx_fragment *fragment;

	if (!host->sent_first)
		return host_poll(host);
	fragment = take_sent(host, nth);
	fragment->status = 0;
	if (!status || is_carried_out)
		fragment->status = carry_out(host, rbx_part_of(fragment));
	if (!fragment->status)
		fragment->status = status;
	fragment->done(fragment);
	return true;
}

void host_poll_slot_of(struct host *host, enum rbx_piece_kind kind, uint32_t slot,
		       int32_t status, bool is_carried_out)
{
	struct rbx_fragment *fragment = host->sent_first;
	uint32_t nth = 0;

	while (rbx_part_of(fragment)->slot != slot ||
	       rbx_part_of(fragment)->piece->kind != kind) {
		fragment = rbx_fragment_next(fragment);
		nth++;
	}
	(void)host_poll_one(host, nth, status, is_carried_out);
}

void host_poll_slot(struct host *host, uint32_t slot, int32_t status,
		    bool is_carried_out)
{
	struct rbx_fragment *fragment = host->sent_first;

	while (rbx_part_of(fragment)->slot != slot)
		fragment = rbx_fragment_next(fragment);
	host_poll_slot_of(host, rbx_part_of(fragment)->piece->kind, slot, status,
			  is_carried_out);
}

void host_note(struct host *host)
{
	struct rbx_intents intents;
	bool is_full;

	while (rbx_extents_next(host->flow.map, &intents, &is_full))
		rbx_extents_noted(&host->flow, &intents);
}

bool host_round(struct host *host)
{
	host->due_ns = rbx_upkeep_round(&host->upkeep, host->now_ns);
	if (host->flow.map->shape.is_guarded && !host->notes_nothing)
		host_note(host);
	return host->due_ns != UINT64_MAX;
}

bool host_settle(struct host *host)
{
	bool again;

	host->now_ns += RBX_UPKEEP_RETRY_MS * 1000000ull;
	do {
		while (host_poll(host))
			;
		host->wakes_count = 0;
		again = host_round(host);
	} while (host->wakes_count || host->sent_first);
	return again;
}

void host_server_dies(struct host *host, uint32_t server)
{
	host->servers[server].down = true;
	rbx_upkeep_server_down(&host->upkeep, server);
}

void host_evict(struct host *host, uint32_t server, const struct rbx_loan *loan)
{
	const struct rbx_eviction eviction = {
		.slab_id = loan->slab_id,
		.epoch = loan->epoch,
		.until_ns = UINT64_MAX,
	};

	rbx_upkeep_evict(&host->upkeep, server, &eviction);
}

bool host_has_loan(const struct host *host, const struct rbx_replica *replica)
{
	const struct host_server *server =
		&host->servers[rbx_replica_server(replica)];

	return !server->down &&
	       host_server_has_loan(server, replica->slab_id, replica->epoch);
}

uint32_t host_lent_count(const struct host *host, uint32_t server)
{
	uint32_t area, count = 0;

	for (area = 0; area < HOST_AREAS; area++)
		count += host->servers[server].keys[area] != 0;
	return count;
}

uint32_t host_labelled_count(const struct host *host, uint32_t server)
{
	uint32_t area, count = 0;

	for (area = 0; area < HOST_AREAS; area++)
		count += host->servers[server].keys[area] &&
			 host->servers[server].labelled[area];
	return count;
}

/* ---- Beginning and end ------------------------------------------------------*/

void host_start(struct host *host, enum rbx_piece_kind kind, uint64_t offset,
		void *buf, uint32_t length)
{
	struct rbx_piece_list pieces = { 0 };
	struct rbx_piece *piece;

	assert_int_equal(rbx_piece_pool_take(&host->flow.pool, 1, &pieces), 0);
	piece = rbx_piece_of(pieces.first);
	piece->kind = (uint8_t)kind;
	piece->fragment_flags = 0;
	piece->local_addr = host_device_addr(buf);
	assert_int_equal(rbx_volume_map_aim(host->flow.map, piece, offset,
					    length),
			 length);
	rbx_flow_start(&host->flow, &pieces);
	assert_null(pieces.first);
}

uint32_t host_ended(struct host *host, int32_t status)
{
	struct rbx_node *node;
	uint32_t count = 0;

	for (node = host->ended.first; node; node = node->next, count++)
		assert_int_equal(rbx_piece_of(node)->status, status);
	if (count)
		(void)rbx_piece_pool_give(&host->flow.pool, &host->ended);
	return count;
}

struct rbx_census host_census(struct host *host)
{
	struct rbx_census census;

	rbx_upkeep_census(&host->upkeep, &census);
	return census;
}

static uint8_t out[HOST_CELL_BYTES], in[HOST_CELL_BYTES];

void host_write_cell(struct host *host, uint8_t byte)
{
	memset(out, byte, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
}

void host_assert_cell(struct host *host, uint8_t byte)
{
	host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	memset(out, byte, sizeof(out));
	assert_memory_equal(in, out, sizeof(in));
}

struct host *host_make_shaped(const struct rbx_volume_shape *wanted,
			      uint32_t slabs, uint32_t servers)
{
	struct rbx_volume_shape shape = *wanted;
	struct host *host = aligned_alloc(RBX_PAGE_BYTES, sizeof(*host));
	uint32_t i;

	memset(host, 0, sizeof(*host));
	shape.size_bytes = slabs * HOST_SLAB_BYTES;
	shape.slab_bytes = HOST_SLAB_BYTES;
	shape.fragment_bytes = HOST_CELL_BYTES;
	rbx_flow_init(&host->flow, &host_flow_ops, &host->counters);
	host->now_ns = 1;
	rbx_upkeep_init(&host->upkeep, &host->flow, &host_upkeep_ops,
			HOST_TIMEOUT_NS);
	rbx_flow_open(&host->flow, &shape,
		      calloc(1, rbx_volume_map_size(&shape)), 1, servers,
		      calloc(1, rbx_flow_pool_size(&shape, HOST_PIECES)),
		      HOST_PIECES);
	rbx_copy_pace_limit(&host->flow.rebuild.pace, UINT64_MAX);
	for (i = 0; i < RBX_COPIES_MAX; i++)
		rbx_rebuild_lend(&host->flow, i,
				 calloc(1, rbx_rebuild_copy_size(&host->flow.map->shape)),
				 host_device_addr(malloc(HOST_CELL_BYTES)));
	return host;
}

struct host *host_make(uint32_t slabs, uint32_t replicas, uint32_t servers)
{
	return host_make_shaped(
		&(struct rbx_volume_shape){ .replicas = replicas }, slabs, servers);
}

struct host *host_make_on_demand(uint32_t slabs, uint32_t replicas,
				 uint32_t servers)
{
	return host_make_shaped(&(struct rbx_volume_shape){ .replicas = replicas,
							    .on_demand = true },
				slabs, servers);
}

struct host *host_make_with_checksums(uint32_t slabs, uint32_t replicas,
				      uint32_t servers)
{
	return host_make_shaped(&(struct rbx_volume_shape){ .replicas = replicas,
							    .checksums = true },
				slabs, servers);
}

struct host *host_make_with_page(uint32_t replicas, uint32_t servers)
{
	struct host *host = host_make_with_checksums(1, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_write_cell(host, 7);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	for (uint32_t i = 0; i < HOST_PIECES; i++)
		host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	host_poll(host);
	assert_int_equal(host_ended(host, 0), HOST_PIECES);
	return host;
}

void host_free(struct host *host)
{
	uint32_t i;

	rbx_upkeep_abandon(&host->upkeep);
	while (host_poll(host))
		;
	assert_false(rbx_rebuild_is_under_way(&host->flow));
	rbx_upkeep_end(&host->upkeep);
	assert_int_equal(host->memory_count, 0);
	for (i = 0; i < HOST_SERVERS; i++)
		memset(host->servers[i].keys, 0, sizeof(host->servers[i].keys));
	assert_null(host->ended.first);
	assert_true(rbx_piece_pool_is_idle(&host->flow.pool));
	for (i = 0; i < RBX_COPIES_MAX; i++) {
		struct rbx_piece *copy = host->flow.rebuild.copies[i];

		free(host_memory_at(copy->local_addr));
		free(copy);
	}
	free(host->flow.pool.memory);
	free(host->flow.map);
	free(host);
}
