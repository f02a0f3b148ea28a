/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scripted_host_ops.c - see scripted_host_ops.h.
 */
#include "tests/core/scripted_host_ops.h"

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

void *host_memory_at(uint64_t addr)
{
	return (void *)(uintptr_t)(addr - DEVICE_SHIFT);
}

static const void *look(struct rbx_flow *flow, const struct rbx_piece *piece)
{
	(void)flow;
	return host_memory_at(piece->local_addr);
}

static void show(struct rbx_flow *flow, struct rbx_piece *piece)
{
	of_flow(flow)->shown = piece;
}

const struct rbx_flow_ops host_flow_ops = { submit, end_later, ended, wake,
					    look,   show };

/* ---- Of the upkeep ----------------------------------------------------------*/

static void ask(struct rbx_upkeep *upkeep, uint32_t index,
		enum rbx_call_kind kind, const struct rbx_loan *loan, uint64_t label)
{
	struct host *host = of_upkeep(upkeep);
	struct host_server *server = &host->servers[index];

	(void)label;
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
	server->labelled[area] = false;
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

bool host_server_has_loan(const struct host_server *server, uint64_t area,
			  uint64_t epoch)
{
	return server->keys[area] && server->epochs[area] == epoch;
}

static int check(const struct host_server *server)
{
	return host_server_has_loan(server, server->loan.slab_id,
				    server->loan.epoch) ?
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

static int label(struct host_server *server)
{
	int err = server->down ? -EHOSTUNREACH : server->label_err;

	if (!err)
		err = check(server);
	if (!err)
		server->labelled[server->loan.slab_id] = server->kind == RBX_CALL_LABEL;
	return err;
}

static bool is_slow(const struct host_server *server)
{
	return !server->down &&
	       (server->is_slow ||
		(server->is_slow_to_label && server->kind == RBX_CALL_LABEL) ||
		(server->is_slow_to_end && server->kind == RBX_CALL_UNMAP) ||
		(server->is_slow_to_unlabel && server->kind == RBX_CALL_UNLABEL));
}

static int answer(struct rbx_upkeep *upkeep, uint32_t index,
		  struct rbx_loan *loan)
{
	struct host *host = of_upkeep(upkeep);
	struct host_server *server = &host->servers[index];

	assert_true(server->is_asked);
	if (is_slow(server))
		return -EAGAIN;
	server->is_asked = false;
	server->is_slow = host->answers_at_wait;
	host->asks_count--;
	if (server->kind == RBX_CALL_MAP)
		return map(host, server, loan);
	if (server->kind == RBX_CALL_LABEL || server->kind == RBX_CALL_UNLABEL)
		return say(host, label(server));
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
		host->servers[i].is_slow =
			host->answers_at_wait && !host->servers[i].is_asked;
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

const struct rbx_upkeep_ops host_upkeep_ops = {
	.ask = ask,
	.answer = answer,
	.refused = refused,
	.wait = answers_wait,
	.memory_lend = memory_lend,
	.memory_take_back = memory_take_back,
	.free_bytes = free_bytes,
	.tell = tell,
};
