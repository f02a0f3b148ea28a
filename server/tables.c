/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tables.c - the tables of connections, clients and data queue pairs.
 *
 * Each table has its final length from the start, and an entry is first touched when it
 * is used. Freed entries are taken before new ones. So the memory of a server depends on
 * the most clients that it has had at a time. The buffers of connections are made and
 * registered in blocks, when the first connection of a block comes, as registered memory
 * is pinned. The first block is made at the start, so that a limit on pinned memory shows
 * then.
 *
 * Half-open connections are in one of two lists: of untrusted clients, and of clients
 * that resume. The data queue pairs of each client have entries of their own.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "server/state.h"

#define BLOCK_BYTES                                                    \
	((size_t)RBX_CONNECTIONS_PER_BLOCK * RBX_CONTROL_BUFFERS *     \
	 RBX_CONTROL_BUFFER_BYTES)

static uint32_t blocks_count(const struct rbx_server *s)
{
	return (RBX_CONNECTIONS_OF(s->clients_max) +
		RBX_CONNECTIONS_PER_BLOCK - 1) /
	       RBX_CONNECTIONS_PER_BLOCK;
}

/* For how many clients one completion queue of the device has room for all completions. */
static uint32_t clients_that_fit(const struct rbx_server *s)
{
	const uint32_t max = s->device->caps.max_cqe;
	const uint32_t of_one = RBX_COMPLETIONS_OF(1) - RBX_COMPLETIONS_OF(0);

	if (max < RBX_COMPLETIONS_OF(1))
		return 1;
	return (max - RBX_COMPLETIONS_OF(0)) / of_one;
}

int rbx_tables_init(struct rbx_server *s)
{
	void *places;

	s->clients_max = RBX_MIN(s->options.clients_max ?: RBX_CLIENTS_DEFAULT,
				 clients_that_fit(s));
	if (s->clients_max < s->options.clients_max)
		rbx_log(&s->log, "a completion queue of this device holds %u: "
			"%u clients at a time, not %u",
			s->device->caps.max_cqe, s->clients_max,
			s->options.clients_max);
	places = malloc(rbx_id_map_size(s->clients_max));
	s->clients = calloc(s->clients_max, sizeof(*s->clients));
	s->connections = calloc(RBX_CONNECTIONS_OF(s->clients_max),
				sizeof(*s->connections));
	s->blocks = calloc(blocks_count(s), sizeof(*s->blocks));
	s->data_qps = calloc((size_t)s->clients_max * RBX_QUEUE_PAIRS_MAX,
			     sizeof(*s->data_qps));
	if (places)
		rbx_id_map_init(&s->sessions, places, s->clients_max);
	if (!places || !s->clients || !s->connections || !s->blocks ||
	    !s->data_qps)
		return rbx_error(-ENOMEM, "no memory for tables of %u clients",
				 s->clients_max);
	return 0;
}

void rbx_tables_destroy(struct rbx_server *s)
{
	uint32_t i;

	for (i = 0; s->blocks && i < blocks_count(s); i++) {
		struct rbx_buffer_block *block = &s->blocks[i];

		if (block->mr)
			s->fabric.ops->deregister_memory(s->device, &block->mr,
							 1);
		if (block->buffers)
			munmap(block->buffers, BLOCK_BYTES);
	}
	free(s->blocks);
	free(s->data_qps);
	free(s->connections);
	free(s->clients);
	free(s->sessions.places);
}

/* ---- Connections -----------------------------------------------------------*/

/* 0, or -errno with rbx_last_error(). */
static int block_make(struct rbx_server *s, struct rbx_buffer_block *block)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err;
	struct rbx_mr_init init = {
		.length_bytes = BLOCK_BYTES,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};

	init.addr = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (init.addr == MAP_FAILED)
		return rbx_error(-ENOMEM, "no memory for message buffers");
	err = s->fabric.ops->register_memory(s->device, &init, 1, &block->mr,
					     error);
	if (err) {
		block->mr = NULL;
		munmap(init.addr, BLOCK_BYTES);
		return rbx_error(err, "cannot register message buffers: %s",
				 error);
	}
	block->buffers = init.addr;
	return 0;
}

int rbx_tables_begin(struct rbx_server *s)
{
	return block_make(s, &s->blocks[0]);
}

struct rbx_connection *rbx_connection_take(struct rbx_server *s)
{
	struct rbx_connection *c = s->connection_free;
	struct rbx_buffer_block *block;

	if (c) {
		s->connection_free = c->next;
		return c;
	}
	if (s->connections_used == RBX_CONNECTIONS_OF(s->clients_max))
		return NULL;
	block = &s->blocks[s->connections_used / RBX_CONNECTIONS_PER_BLOCK];
	if (!block->buffers && block_make(s, block)) {
		rbx_log(&s->log, "%s", rbx_last_error());
		return NULL;
	}
	return &s->connections[s->connections_used++];
}

void rbx_connection_give(struct rbx_server *s, struct rbx_connection *c)
{
	c->next = s->connection_free;
	s->connection_free = c;
}

struct rbx_sge rbx_connection_buffer(const struct rbx_server *s,
				     const struct rbx_connection *c,
				     uint32_t slot)
{
	uint32_t index = (uint32_t)(c - s->connections);
	const struct rbx_buffer_block *block =
		&s->blocks[index / RBX_CONNECTIONS_PER_BLOCK];
	size_t number = index % RBX_CONNECTIONS_PER_BLOCK *
				RBX_CONTROL_BUFFERS +
			slot;

	return (struct rbx_sge){
		.addr = (uintptr_t)(block->buffers +
				    number * RBX_CONTROL_BUFFER_BYTES),
		.length_bytes = RBX_CONTROL_BUFFER_BYTES,
		.lkey = block->mr->lkey,
	};
}

static struct rbx_connection_list *half_open_list(struct rbx_server *s,
						  const struct rbx_connection *c)
{
	return c->session_id ? &s->resumers : &s->untrusted;
}

void rbx_half_open_join(struct rbx_server *s, struct rbx_connection *c)
{
	struct rbx_connection_list *list = half_open_list(s, c);
	struct rbx_client *client = rbx_client_find(s, c->session_id);

	/* A connection that was open is not an attempt to resume. */
	if (client && c->state == RBX_CONNECTION_OPEN) {
		RBX_ASSERT(!client->leaving);
		client->leaving = c;
	} else if (client) {
		client->attempt = c;
	}
	c->prev = NULL;
	c->next = list->first;
	if (c->next)
		c->next->prev = c;
	list->first = c;
	list->count++;
}

void rbx_half_open_part(struct rbx_server *s, struct rbx_connection *c)
{
	struct rbx_connection_list *list = half_open_list(s, c);
	struct rbx_client *client = rbx_client_find(s, c->session_id);

	if (client && client->attempt == c)
		client->attempt = NULL;
	if (client && client->leaving == c)
		client->leaving = NULL;
	if (c->prev)
		c->prev->next = c->next;
	else
		list->first = c->next;
	if (c->next)
		c->next->prev = c->prev;
	list->count--;
}

void rbx_half_open_orphan(struct rbx_server *s, struct rbx_connection *c)
{
	RBX_ASSERT(c->state == RBX_CONNECTION_CLOSING);
	rbx_half_open_part(s, c);
	c->session_id = 0;
	rbx_half_open_join(s, c);
}

/* ---- Clients ---------------------------------------------------------------*/

struct rbx_client *rbx_client_take(struct rbx_server *s)
{
	struct rbx_client *client = s->client_free;

	if (client) {
		s->client_free = client->next_free;
		return client;
	}
	if (s->clients_used == s->clients_max)
		return NULL;
	return &s->clients[s->clients_used++];
}

void rbx_client_give(struct rbx_server *s, struct rbx_client *client)
{
	client->next_free = s->client_free;
	s->client_free = client;
}

struct rbx_client *rbx_client_find(const struct rbx_server *s,
				   uint64_t session_id)
{
	uint32_t index = rbx_id_map_find(&s->sessions, session_id);

	return index == RBX_ID_MAP_NONE ? NULL : &s->clients[index];
}

struct rbx_data_qp *rbx_data_qps_of(const struct rbx_server *s,
				    const struct rbx_client *client)
{
	return &s->data_qps[rbx_client_index(s, client) * RBX_QUEUE_PAIRS_MAX];
}
