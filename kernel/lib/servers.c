/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.c - the memory servers of a volume: named by its options, connected to,
 * what they say unasked, and what the upkeep borrows from them.
 *
 * The first server decides which device the volume uses; the others must be
 * reached through the same one.
 */
#include <linux/slab.h>

#include "core/last_copies.h"
#include "kernel/lib/address.h"
#include "kernel/lib/volume.h"

/* Room for "[address]:port" and what somebody may have typed. */
#define NAME_BYTES_MAX 80

/* ---- What they say unasked ----------------------------------------------------*/

static void peer_down(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	rbx_upkeep_server_down(&volume->upkeep,
			       (uint32_t)(server - volume->servers));
}

static void peer_evict(struct rbx_peer *peer,
		       const struct rbx_eviction *eviction, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	rbx_upkeep_evict(&volume->upkeep, (uint32_t)(server - volume->servers),
			 eviction);
}

static bool server_is_up(struct rbx_flow *flow, uint32_t server)
{
	return rbx_peer_is_up(rbx_volume_of_flow(flow)->servers[server].peer);
}

static bool peer_hold(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	return rbx_last_copies_hold(&volume->flow,
				    (uint32_t)(server - volume->servers),
				    server_is_up);
}

/* ---- What the upkeep asks for ---------------------------------------------------*/

static struct rbx_session *session_of(struct rbx_upkeep *upkeep,
				      uint32_t server)
{
	return rbx_volume_of_upkeep(upkeep)->servers[server].peer->session;
}

static int server_map(struct rbx_upkeep *upkeep, uint32_t server,
		      struct rbx_loan *loan)
{
	return rbx_session_map(session_of(upkeep, server), loan);
}

static int server_unmap(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	return rbx_session_unmap(session_of(upkeep, server), loan);
}

static int server_check(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	return rbx_session_check(session_of(upkeep, server), loan);
}

static uint64_t server_free_bytes(struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_session_free_bytes(session_of(upkeep, server));
}

/* By the keeper, which does no I/O for it: memory may have to be written here before
 * any is free. Without it writes of a lost slab end as those before them. */
static void *memory_lend(struct rbx_upkeep *upkeep, size_t size)
{
	return kvmalloc(size, GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
}

static void memory_take_back(struct rbx_upkeep *upkeep, void *memory)
{
	kvfree(memory);
}

const struct rbx_upkeep_ops rbx_volume_upkeep_ops = {
	.map = server_map,
	.unmap = server_unmap,
	.check = server_check,
	.memory_lend = memory_lend,
	.memory_take_back = memory_take_back,
	.free_bytes = server_free_bytes,
	.tell = rbx_volume_tell,
	.tending = rbx_volume_trace_task,
};

/* ---- Their names ----------------------------------------------------------------*/

static bool is_in_use(const struct rbx_volume *volume,
		      const struct sockaddr_storage *address)
{
	uint32_t i;

	for (i = 0; i < volume->server_count; i++)
		if (!memcmp(rbx_session_address(volume->servers[i].peer->session),
			    address, sizeof(*address)))
			return true;
	return false;
}

/* ---- Connecting ------------------------------------------------------------------*/

static const struct {
	const char *name;
	bool merge;
	bool chain;
} modes[] = {
	{ "single", false, false },
	{ "doorbell", false, true },
	{ "merge", true, false },
	{ "hybrid", true, true },
};

static int client_options_make(const struct rbx_volume *volume,
			       const struct rbx_volume_options *options,
			       struct rbx_client_options *made)
{
	size_t i;

	*made = (struct rbx_client_options){
		.queue_pairs = options->queue_pairs,
		.peer_timeout_ms = options->peer_timeout_ms,
		.secret = { volume->secret, options->secret_bytes },
	};
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(options->mode, modes[i].name))
			continue;
		made->merge = modes[i].merge;
		made->chain = modes[i].chain;
		return 0;
	}
	pr_err("rdmabox: mode \"%s\": single, doorbell, merge or hybrid\n",
	       options->mode);
	return -EINVAL;
}

static int client_open(struct rbx_volume *volume,
		       const struct rbx_volume_options *options,
		       struct sockaddr_storage *address)
{
	struct rbx_client_options client_options;
	int err = client_options_make(volume, options, &client_options);

	if (!err)
		err = rbx_client_open(&volume->client, &client_options,
				      address);
	volume->ctx = volume->client.ctx;
	return err;
}

static int server_open(struct rbx_volume *volume,
		       const struct rbx_volume_options *options,
		       struct sockaddr_storage *address)
{
	struct rbx_volume_server *server =
		&volume->servers[volume->server_count];
	const struct rbx_peer_events events = {
		.down = peer_down,
		.evict = peer_evict,
		.hold = peer_hold,
		.wait = rbx_last_copies_wait,
		.user = server,
	};
	uint32_t other;
	int err = 0;

	/* Two replicas on one server would be lost together. */
	if (is_in_use(volume, address))
		return -EEXIST;
	if (!options->secret && !options->insecure && !rbx_address_is_loopback(address))
		return -EPERM;
	if (!volume->ctx)
		err = client_open(volume, options, address);
	server->volume = volume;
	rbx_upkeep_server_begins(&volume->upkeep, volume->server_count);
	if (!err)
		err = rbx_peer_open(&volume->client, address, &events,
				    &server->peer);
	if (err)
		return err;
	err = rbx_upkeep_server_connected(
		&volume->upkeep, volume->server_count,
		rbx_session_incarnation(server->peer->session), &other);
	if (err)
		rbx_peer_close(server->peer);
	volume->server_count += !err;
	return err;
}

static const char *sentence(int err)
{
	switch (err) {
	case -EINVAL:
		return "not of the form 10.0.0.1:7471";
	case -EEXIST:
		return "named twice";
	case -EPERM:
		return "another machine, and there is no secret";
	case -ENODEV:
		return "not reached through an RDMA device";
	case -EXDEV:
		return "reached through another device than the first one";
	case -EACCES:
		return "the secret there is another one, or there is none here";
	case -ENOSPC:
		return "more servers and queue pairs than fit";
	default:
		return "no connection";
	}
}

/* The next of a comma-separated list, which is moved on; its length. */
static int name_take(const char **list, char name[NAME_BYTES_MAX])
{
	size_t length = strcspn(*list, ",");

	if (!length || length >= NAME_BYTES_MAX)
		return -EINVAL;
	memcpy(name, *list, length);
	name[length] = '\0';
	*list += length + ((*list)[length] == ',');
	return 0;
}

int rbx_volume_servers_open(struct rbx_volume *volume,
			    const struct rbx_volume_options *options)
{
	const char *list = options->servers;
	int err = 0;

	do {
		struct sockaddr_storage address;
		char name[NAME_BYTES_MAX] = "", text[NAME_BYTES_MAX];

		memset(&address, 0, sizeof(address));
		err = volume->server_count < RBX_SERVERS_MAX ?
			      name_take(&list, name) :
			      -ENOSPC;
		strscpy(text, name, sizeof(text));
		if (!err)
			err = rbx_address_parse(text, &address);
		if (!err)
			err = server_open(volume, options, &address);
		if (err)
			pr_err("rdmabox: server \"%s\": %s (%d)\n", name,
			       sentence(err), err);
	} while (!err && *list);
	return err;
}

void rbx_volume_servers_close(struct rbx_volume *volume)
{
	uint32_t i;

	/* A recovery asks whether the other servers are up (peer_hold()). */
	for (i = 0; i < volume->server_count; i++)
		rbx_peer_stop(volume->servers[i].peer);
	for (i = 0; i < volume->server_count; i++)
		rbx_peer_close(volume->servers[i].peer);
	if (volume->ctx)
		rbx_client_close(&volume->client);
}
