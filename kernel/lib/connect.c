/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - connects a volume to the memory servers that its options name, and takes
 * leave of them.
 *
 * Each of them takes a round trip or several, and one that does not answer the peer
 * timeout. So a few workers do it side by side. If one server cannot be connected those
 * that nobody has begun with are left, and the volume is not opened. The task that opens
 * it only waits, so that a signal ends the opening: those that pause, as a server is
 * busy, give up then, and the others end within the peer timeout.
 *
 * The first server decides which device the volume uses; the others must be
 * reached through the same one.
 */
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kernel/lib/address.h"
#include "kernel/lib/volume.h"

/* Room for "[address]:port" and what somebody may have typed. */
#define NAME_BYTES_MAX 80

/* ---- Side by side -------------------------------------------------------------*/

struct side_by_side {
	struct rbx_volume *volume;
	void (*act)(struct rbx_volume *volume, uint32_t index);
	uint32_t next; /* atomic: place of the table */
	bool stop; /* atomic: begin with no other */
	uint32_t left_count; /* atomic: of the workers */
	wait_queue_head_t done;
	struct side {
		struct work_struct work;
		struct side_by_side *all;
	} sides[RBX_CONNECTS_MAX];
};

static void side_main(struct side_by_side *all)
{
	struct rbx_volume *volume = all->volume;
	uint32_t index;

	while (!READ_ONCE(all->stop) &&
	       (index = RBX_FETCH_ADD(&all->next, 1)) < volume->server_count) {
		all->act(volume, index);
		if (volume->servers[index].open_err)
			WRITE_ONCE(all->stop, true);
	}
}

static void side_work(struct work_struct *work)
{
	struct side_by_side *all = container_of(work, struct side, work)->all;

	side_main(all);
	if (RBX_FETCH_ADD(&all->left_count, (uint32_t)-1) == 1)
		wake_up(&all->done);
}

/* Acts on each place of the table. -EINTR: a signal came, and not all are done, which
 * only happens to who opens. */
static int do_side_by_side(struct rbx_volume *volume, bool opens,
			   void (*act)(struct rbx_volume *volume, uint32_t index))
{
	struct side_by_side *all = kzalloc(sizeof(*all), GFP_KERNEL);
	uint32_t i, count = min(volume->server_count, RBX_CONNECTS_MAX);
	int err = 0;

	if (!all)
		return -ENOMEM;
	all->volume = volume;
	all->act = act;
	all->left_count = count;
	init_waitqueue_head(&all->done);
	for (i = 0; i < count; i++) {
		all->sides[i].all = all;
		INIT_WORK(&all->sides[i].work, side_work);
		queue_work(system_unbound_wq, &all->sides[i].work);
	}
	if (opens && wait_event_interruptible(all->done,
					      !RBX_LOAD_ACQUIRE(&all->left_count))) {
		WRITE_ONCE(all->stop, true);
		rbx_client_stop(&volume->client);
		err = -EINTR;
	}
	for (i = 0; i < count; i++)
		flush_work(&all->sides[i].work);
	kfree(all);
	return err;
}

/* ---- Their names ----------------------------------------------------------------*/

/* What is known of a server before it is connected. */
struct named {
	struct sockaddr_storage address;
	char name[NAME_BYTES_MAX];
};

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
	case -EINTR:
		return "given up, as a signal came";
	default:
		return "no connection";
	}
}

static int named_error(const struct named *named, int err)
{
	pr_err("rdmabox: server \"%s\": %s (%d)\n", named->name, sentence(err),
	       err);
	return err;
}

/* The next of a comma-separated list, which is moved on. */
static int name_take(const char **list, struct named *named)
{
	size_t length = strcspn(*list, ",");
	char text[NAME_BYTES_MAX];

	if (!length || length >= NAME_BYTES_MAX)
		return -EINVAL;
	memcpy(named->name, *list, length);
	named->name[length] = '\0';
	*list += length + ((*list)[length] == ',');
	strscpy(text, named->name, sizeof(text));
	return rbx_address_parse(text, &named->address);
}

static int name_check(const struct rbx_volume_options *options,
		      const struct named *all, uint32_t index)
{
	const struct named *named = &all[index];
	uint32_t i;

	/* Two replicas on one server would be lost together. */
	for (i = 0; i < index; i++)
		if (!memcmp(&all[i].address, &named->address,
			    sizeof(named->address)))
			return -EEXIST;
	if (!options->secret && !options->insecure &&
	    !rbx_address_is_loopback(&named->address))
		return -EPERM;
	return 0;
}

static uint32_t names_count(const char *list)
{
	uint32_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

static int names_take(const struct rbx_volume_options *options,
		      struct named *all, uint32_t count)
{
	const char *list = options->servers;
	uint32_t i;
	int err;

	for (i = 0; i < count; i++) {
		err = name_take(&list, &all[i]);
		if (!err)
			err = name_check(options, all, i);
		if (err)
			return named_error(&all[i], err);
	}
	return 0;
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
		       struct named *first)
{
	struct rbx_client_options client_options;
	int err = client_options_make(volume, options, &client_options);

	if (err)
		return err;
	err = rbx_client_open(&volume->client, &client_options,
			      &first->address);
	volume->ctx = volume->client.ctx;
	return err ? named_error(first, err) : 0;
}

static void open_act(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_volume_server *server = &volume->servers[index];
	const struct rbx_peer_events events =
		rbx_volume_peer_events(volume, index);

	rbx_upkeep_server_begins(&volume->upkeep, index);
	server->open_err = rbx_peer_open(&volume->client, server->address,
					 &events, &server->peer);
	if (server->open_err)
		server->peer = NULL;
}

/* That it is not another one under this name; the first that is not connected. */
static int opened_check(struct rbx_volume *volume, const struct named *all)
{
	uint32_t i, other;
	int err = 0;

	for (i = 0; i < volume->server_count && !err; i++)
		err = volume->servers[i].open_err;
	if (err)
		return named_error(&all[i - 1], err);
	for (i = 0; i < volume->server_count; i++) {
		err = rbx_upkeep_server_connected(
			&volume->upkeep, i,
			rbx_session_incarnation(volume->servers[i].peer->session),
			&other);
		if (err)
			return named_error(&all[i], err);
	}
	return 0;
}

static int servers_open(struct rbx_volume *volume,
			const struct rbx_volume_options *options,
			struct named *all, uint32_t count)
{
	uint32_t i;
	int err = names_take(options, all, count);

	if (!err)
		err = client_open(volume, options, &all[0]);
	if (err)
		return err;
	for (i = 0; i < count; i++) {
		volume->servers[i].volume = volume;
		volume->servers[i].address = &all[i].address;
	}
	volume->server_count = count;
	err = do_side_by_side(volume, true, open_act);
	return err ? err : opened_check(volume, all);
}

int rbx_volume_servers_open(struct rbx_volume *volume,
			    const struct rbx_volume_options *options)
{
	uint32_t count = names_count(options->servers);
	struct named *all;
	int err = -ENOMEM;

	if (count > RBX_SERVERS_MAX) {
		pr_err("rdmabox: %u servers: a volume has at most %u\n", count,
		       RBX_SERVERS_MAX);
		return -EINVAL;
	}
	all = kvcalloc(count, sizeof(*all), GFP_KERNEL);
	volume->servers =
		kvcalloc(count, sizeof(*volume->servers), GFP_KERNEL);
	if (all && volume->servers)
		err = servers_open(volume, options, all, count);
	kvfree(all);
	return err;
}

/* ---- And at the end ------------------------------------------------------------*/

static void close_act(struct rbx_volume *volume, uint32_t index)
{
	if (volume->servers[index].peer)
		rbx_peer_close(volume->servers[index].peer);
}

void rbx_volume_servers_close(struct rbx_volume *volume)
{
	uint32_t i;

	/* A recovery asks whether the other servers are up (peer_hold()). */
	for (i = 0; i < volume->server_count; i++)
		if (volume->servers[i].peer)
			rbx_peer_stop(volume->servers[i].peer);
	for (i = 0; i < volume->server_count; i++)
		volume->servers[i].open_err = 0;
	if (do_side_by_side(volume, false, close_act))
		for (i = 0; i < volume->server_count; i++)
			close_act(volume, i);
	if (volume->ctx)
		rbx_client_close(&volume->client);
	kvfree(volume->servers);
}
