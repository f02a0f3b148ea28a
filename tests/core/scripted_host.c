/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scripted_host.c - see scripted_host.h.
 */
#include "tests/core/scripted_host.h"

static struct host *of_flow(struct rbx_flow *flow)
{
	return RBX_CONTAINER_OF(flow, struct host, flow);
}

static struct host *of_upkeep(struct rbx_upkeep *upkeep)
{
	return RBX_CONTAINER_OF(upkeep, struct host, upkeep);
}

/* ---- Of the flow ------------------------------------------------------------*/

static void submit(struct rbx_flow *flow, uint32_t server,
		   struct rbx_fragment *first, struct rbx_fragment *last)
{
	struct host *host = of_flow(flow);
	struct rbx_fragment *fragment;

	for (fragment = first; fragment; fragment = rbx_fragment_next(fragment))
		assert_int_equal(rbx_part_of(fragment)->server, server);
	host->submits_count++;
	rbx_fragment_append(&host->sent_first, &host->sent_last, first, last);
}

static void end_later(struct rbx_flow *flow, struct rbx_fragment *fragment)
{
	struct host *host = of_flow(flow);

	rbx_fragment_append(&host->later_first, &host->later_last, fragment,
			    fragment);
}

static void ended(struct rbx_flow *flow, struct rbx_piece_list *pieces)
{
	assert_non_null(pieces->first);
	rbx_piece_list_append(&of_flow(flow)->ended, pieces);
}

static void wake(struct rbx_flow *flow)
{
	of_flow(flow)->wakes_count++;
}

/* The device sees memory elsewhere than the CPU does, as behind an IOMMU. */
#define DEVICE_SHIFT 0x100000000000ull

uint64_t host_device_addr(const void *memory)
{
	return (uintptr_t)memory + DEVICE_SHIFT;
}

static void *memory_at(uint64_t addr)
{
	return (void *)(uintptr_t)(addr - DEVICE_SHIFT);
}

static const void *look(struct rbx_flow *flow, const struct rbx_piece *piece)
{
	(void)flow;
	return memory_at(piece->local_addr);
}

static const struct rbx_flow_ops flow_ops = { submit, end_later, ended, wake,
					      look };

/* ---- Of the upkeep ----------------------------------------------------------*/

static void ask(struct rbx_upkeep *upkeep, uint32_t index,
		enum rbx_call_kind kind, const struct rbx_loan *loan)
{
	struct host *host = of_upkeep(upkeep);
	struct host_server *server = &host->servers[index];

	assert_false(server->is_asked);
	/* One that has just gone down may be asked, until a round has seen to that. */
	assert_false(rbx_upkeep_server_is_down(upkeep, index) &&
		     !upkeep->servers[index].went_down);
	server->is_asked = true;
	server->kind = kind;
	if (loan)
		server->loan = *loan;
	server->asked_count += kind == RBX_CALL_MAP;
	host->asks_count++;
	host->asks_max_count =
		RBX_MAX(host->asks_max_count, host->asks_count);
}

/* The server says why not. */
static int say(struct host *host, int err)
{
	host->said_err = err;
	return err;
}

/* Keys that are used again are above all others. */
static uint32_t key_of(struct host *host, uint32_t area)
{
	return host->reuses_keys ? UINT32_MAX - area : ++host->next_key;
}

static int map(struct host *host, struct host_server *server,
	       struct rbx_loan *loan)
{
	uint32_t area;

	if (server->down || server->refuse)
		return say(host, server->down ? -EHOSTUNREACH :
						server->refuse);
	for (area = 0; area < HOST_AREAS && server->keys[area]; area++)
		;
	if (area == HOST_AREAS)
		return say(host, -ENOSPC);
	server->epochs[area] = ++host->next_epoch;
	server->keys[area] = key_of(host, area);
	memset(server->memory[area], 0, HOST_SLAB_BYTES);
	*loan = (struct rbx_loan){
		.slab_id = area,
		.epoch = server->epochs[area],
		.remote_addr = (uintptr_t)server->memory[area],
		.rkey = server->keys[area],
	};
	return 0;
}

static void refused(struct rbx_upkeep *upkeep)
{
	of_upkeep(upkeep)->refused_err = of_upkeep(upkeep)->said_err;
}

static bool has_loan(const struct host_server *server, uint64_t area,
		     uint64_t epoch)
{
	return server->keys[area] && server->epochs[area] == epoch;
}

static int check(const struct host_server *server)
{
	return has_loan(server, server->loan.slab_id, server->loan.epoch) ?
		       0 :
		       -ESTALE;
}

static int unmap(struct host_server *server)
{
	if (server->down || server->deaf)
		return server->down ? -ETIMEDOUT : server->deaf;
	if (check(server))
		return -ESTALE;
	server->keys[server->loan.slab_id] = 0;
	return 0;
}

static int answer(struct rbx_upkeep *upkeep, uint32_t index,
		  struct rbx_loan *loan)
{
	struct host *host = of_upkeep(upkeep);
	struct host_server *server = &host->servers[index];

	assert_true(server->is_asked);
	if (server->is_slow && !server->down)
		return -EAGAIN;
	server->is_asked = false;
	host->asks_count--;
	if (server->kind == RBX_CALL_MAP)
		return map(host, server, loan);
	return say(host, server->kind == RBX_CALL_UNMAP ? unmap(server) : check(server));
}

/* While it is opened: a slow server answers in the end. */
static int answers_wait(struct rbx_upkeep *upkeep)
{
	struct host *host = of_upkeep(upkeep);
	uint32_t i;

	host->waits_count++;
	if (host->waits_count == host->waits_end_count)
		return -EINTR;
	for (i = 0; i < HOST_SERVERS; i++)
		host->servers[i].is_slow = false;
	return 0;
}

static uint64_t free_bytes(struct rbx_upkeep *upkeep, uint32_t index)
{
	uint32_t lent = host_lent_count(of_upkeep(upkeep), index);

	return (HOST_AREAS - lent) * (uint64_t)HOST_SLAB_BYTES;
}

static void tell(struct rbx_upkeep *upkeep, enum rbx_news news, uint32_t count,
		 uint32_t server, int err)
{
	struct host *host = of_upkeep(upkeep);
	size_t told_count = strlen(host->news);

	(void)server;
	assert_true(told_count + 1 < HOST_NEWS_MAX);
	host->news[told_count] = HOST_NEWS_LETTERS[news];
	host->news_counts[told_count] = count;
	if (news == RBX_NEWS_REBUILD_STUCK)
		host->stuck_err = err;
	if (host->harm)
		host->harm(host, news);
}

static void *memory_lend(struct rbx_upkeep *upkeep, size_t size)
{
	struct host *host = of_upkeep(upkeep);
	void *memory;

	if (host->is_short_of_memory)
		return NULL;
	memory = malloc(size);
	memset(memory, 0xff, size);
	host->memory_count++;
	return memory;
}

static void memory_take_back(struct rbx_upkeep *upkeep, void *memory)
{
	of_upkeep(upkeep)->memory_count--;
	free(memory);
}

static const struct rbx_upkeep_ops upkeep_ops = {
	.ask = ask,
	.answer = answer,
	.refused = refused,
	.wait = answers_wait,
	.memory_lend = memory_lend,
	.memory_take_back = memory_take_back,
	.free_bytes = free_bytes,
	.tell = tell,
};

/* ---- The network ------------------------------------------------------------*/

static int32_t carry_out(struct host *host, const struct rbx_part *part)
{
	const struct rbx_fragment *fragment = &part->fragment;
	const struct host_server *server = &host->servers[part->server];
	void *remote = (void *)(uintptr_t)fragment->remote_addr;
	void *local = memory_at(fragment->local_addr);
	uint32_t area;

	if (server->down)
		return -EHOSTUNREACH;
	if (host->fails_here)
		return host->fails_here;
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

bool host_round(struct host *host)
{
	host->due_ns = rbx_upkeep_round(&host->upkeep, host->now_ns);
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
	       has_loan(server, replica->slab_id, replica->epoch);
}

uint32_t host_lent_count(const struct host *host, uint32_t server)
{
	uint32_t area, count = 0;

	for (area = 0; area < HOST_AREAS; area++)
		count += host->servers[server].keys[area] != 0;
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
	rbx_flow_init(&host->flow, &flow_ops, &host->counters);
	host->now_ns = 1;
	rbx_upkeep_init(&host->upkeep, &host->flow, &upkeep_ops,
			HOST_TIMEOUT_NS);
	rbx_flow_open(&host->flow, &shape,
		      calloc(1, rbx_volume_map_size(&shape)), 1, servers,
		      calloc(1, rbx_flow_pool_size(&shape, HOST_PIECES)),
		      HOST_PIECES);
	for (i = 0; i < RBX_COPIES_MAX; i++)
		rbx_rebuild_lend(&host->flow, i,
				 calloc(1, rbx_piece_size(shape.replicas + 1, 0)),
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

		free(memory_at(copy->local_addr));
		free(copy);
	}
	free(host->flow.pool.memory);
	free(host->flow.map);
	free(host);
}
