/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - connects a volume to the memory servers that its options name, and leaves
 * them. A volume that has a name is connected to those of them that have it.
 *
 * A few are connected at a time (client/side_by_side.h). The task that opens the volume
 * only waits, so a signal ends the opening. A connect that pauses because its server is
 * busy then gives up; the others end within the peer timeout.
 *
 * The first server that can be reached decides which device the volume uses. If another one is
 * reached through another device, the volume has a client for each (context.h), and maps memory
 * late (dma.c).
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "client/joining.h"
#include "client/opening.h"
#include "core/modes.h"
#include "kernel/lib/address.h"
#include "kernel/lib/volume/volume.h"

/* Room for "[address]:port", and for mistyped text. */
#define NAME_BYTES_MAX 80

/* ---- Their names ----------------------------------------------------------------*/

/* A server that is not connected yet. */
struct rbx_server_name {
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
	case -EOPNOTSUPP:
		return "reached through an iWARP device, which is not supported";
	case -EPERM:
		return "another machine, and there is no secret";
	case -ENODEV:
		return "not reached through an RDMA device";
	case -EXDEV:
		return "reached through one RDMA device more than a volume can use";
	case -EACCES:
		return "the secret there is another one or has another name, or there is none here";
	case -ENOSPC:
		return "more servers and queue pairs than fit";
	case -EINTR:
		return "given up, as a signal came";
	default:
		return "no connection";
	}
}

static int named_error(const struct rbx_server_name *named, int err)
{
	pr_err("rdmabox: server \"%s\": %s (%d)\n", named->name, sentence(err),
	       err);
	return err;
}

/* Takes the next name of a comma-separated list, and moves *list on. */
static int name_take(const char **list, struct rbx_server_name *named)
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

static int far_check(const struct rbx_volume *volume, const struct rbx_server_name *named)
{
	return volume->may_be_far || rbx_address_is_loopback(&named->address) ? 0 : -EPERM;
}

static int name_check(const struct rbx_volume *volume, const struct rbx_server_name *all,
		      uint32_t index)
{
	const struct rbx_server_name *named = &all[index];
	uint32_t i;

	/* Two replicas on one server would be lost together. */
	for (i = 0; i < index; i++)
		if (!memcmp(&all[i].address, &named->address,
			    sizeof(named->address)))
			return -EEXIST;
	return far_check(volume, named);
}

static uint32_t names_count(const char *list)
{
	uint32_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

/* The servers of a list. */
struct names {
	struct rbx_server_name *all;
	uint32_t count;
};

/* They have to be freed even after a failure. */
static int names_take(const struct rbx_volume *volume, const char *list, struct names *names)
{
	uint32_t i;
	int err;

	names->count = names_count(list);
	if (names->count > RBX_SERVERS_MAX) {
		pr_err("rdmabox: %u servers: a volume has at most %u\n", names->count,
		       RBX_SERVERS_MAX);
		return -EINVAL;
	}
	names->all = kvcalloc(names->count, sizeof(*names->all), GFP_KERNEL);
	if (!names->all)
		return -ENOMEM;
	for (i = 0; i < names->count; i++) {
		err = name_take(&list, &names->all[i]);
		if (!err)
			err = name_check(volume, names->all, i);
		if (err)
			(void)named_error(&names->all[i], err);
		if (err) /* twice: as rbx_volume_twice_check() says it of two addresses */
			return err == -EEXIST ? -EINVAL : err;
	}
	return 0;
}

/* ---- Connecting ------------------------------------------------------------------*/

static const struct {
	const char *name;
	bool merge;
	bool chain;
} modes[] = {
#define MODE(name, merge, chain) { name, merge, chain },
	RBX_MODES(MODE)
#undef MODE
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
	strscpy(made->credential, options->credential ?: "", sizeof(made->credential));
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

/* Not all servers of a named volume have to be there. Of another one, the first that is not is
 * the one whose error counts. */
static int client_open(struct rbx_volume *volume,
		       const struct rbx_volume_options *options,
		       const struct names *names)
{
	struct rbx_client_options client_options;
	uint32_t i, tries = options->volume ? names->count : 1;
	int err = client_options_make(volume, options, &client_options);

	if (err)
		return err;
	for (i = 0; i < tries && !volume->ctx; i++) {
		err = rbx_client_open(&volume->client, &client_options,
				      &names->all[i].address);
		volume->ctx = volume->client.ctx;
		if (err)
			(void)named_error(&names->all[i], err);
	}
	return err;
}

/* ---- A named volume ------------------------------------------------------------------*/

/* Sessions with all servers that are there. */
static int crowd_make(struct rbx_volume *volume, const struct names *names,
		      struct rbx_crowd **crowd)
{
	int err = rbx_crowd_make(crowd);
	uint32_t i;

	if (err)
		return err;
	for (i = 0; i < names->count && !err; i++)
		err = rbx_crowd_add(*crowd, names->all[i].name, strlen(names->all[i].name));
	if (!err)
		err = rbx_crowd_connect(*crowd, &volume->client.sessions, true);
	if (err)
		rbx_crowd_close(*crowd);
	return err;
}

/* The volume has the servers of the list that have it. */
static int members_take(struct rbx_volume *volume, const struct rbx_volume_options *options,
			struct names *names)
{
	struct rbx_volume_control *control = &volume->control;
	struct rbx_crowd *crowd;
	char *members = NULL;
	int err = crowd_make(volume, names, &crowd);

	if (err)
		return err;
	err = rbx_opening_begin(control, crowd, options->volume, options->take_over, &members);
	rbx_crowd_close(crowd);
	if (err == -EBUSY && options->holder)
		strscpy(options->holder, control->named->writer, RBX_HOLDER_BYTES);
	if (!err) {
		kvfree(names->all);
		names->all = NULL;
		err = names_take(volume, members, names);
	}
	rbx_memory_free(members);
	return err;
}

/* ---- All of them ---------------------------------------------------------------------*/

int rbx_volume_connect(struct rbx_volume_control *control, uint32_t index,
		       const struct rbx_peer_events *events,
		       struct rbx_peer **peer)
{
	struct rbx_volume *volume = rbx_volume_of_control(control);
	struct sockaddr_storage *address = &control->servers[index].name->address;
	struct rbx_client *client;
	int err = rbx_client_of_address(&volume->client, address, &client);

	if (!err && client != &volume->client)
		err = rbx_volume_map_late(volume);
	return err ? err : rbx_peer_open(client, address, events, peer);
}

/* Checks that no two are the same server, and returns the error of the first that is not
 * connected. */
static int opened_check(struct rbx_volume_control *control)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < control->server_count && !err; i++)
		err = control->servers[i].open_err;
	if (err)
		return named_error(control->servers[i - 1].name, err);
	for (i = 0; i < control->server_count && !err; i++)
		err = rbx_volume_twice_check(control, i);
	return err;
}

static int servers_open(struct rbx_volume *volume, const struct names *names)
{
	struct rbx_volume_control *control = &volume->control;
	uint32_t i;
	int err;

	control->servers = kvcalloc(RBX_SERVERS_MAX, sizeof(*control->servers), GFP_KERNEL);
	if (!control->servers)
		return -ENOMEM;
	for (i = 0; i < names->count; i++)
		control->servers[i].name = &names->all[i];
	control->server_count = names->count;
	rbx_volume_servers_begin(control);
	err = rbx_side_by_side_wait(&control->side_by_side);
	if (err)
		rbx_client_stop(&volume->client);
	rbx_side_by_side_end(&control->side_by_side);
	return err ? err : opened_check(control);
}

int rbx_volume_servers_open(struct rbx_volume *volume,
			    const struct rbx_volume_options *options)
{
	struct names names = { 0 };
	int err = names_take(volume, options->servers, &names);
	uint32_t i;

	mutex_lock(&volume->add_lock);
	for (i = 0; i < names.count && !err; i++)
		rbx_volume_joins_note(volume, &names.all[i].address);
	mutex_unlock(&volume->add_lock);
	if (!err)
		err = client_open(volume, options, &names);
	if (!err && options->volume)
		err = members_take(volume, options, &names);
	if (!err)
		err = servers_open(volume, &names);
	kvfree(names.all);
	return err;
}

/* ---- One more ------------------------------------------------------------------------*/

void rbx_volume_pollers_visit(struct rbx_volume_control *control)
{
	const struct rbx_client *client = &rbx_volume_of_control(control)->client;
	uint32_t i;

	for (; client; client = rbx_client_next(client))
		for (i = 0; i < client->ctx->pollers_count; i++)
			rbx_poller_visit(&client->ctx->pollers[i]);
}

/* add_lock is held. */
static int server_join(struct rbx_volume *volume, struct rbx_server_name *named, bool returns)
{
	struct rbx_address address;
	const struct rbx_joining joining = {
		.address = address.name,
		.name = named,
		.labels = "",
		.returns = returns,
	};

	lockdep_assert_held(&volume->add_lock);
	rbx_address_name(&address, &named->address);
	return rbx_joining_add(&volume->control, &joining);
}

int rbx_volume_server_add(struct rbx_volume *volume, const char *server, bool returns)
{
	struct rbx_server_name named = { 0 };
	int err = name_take(&server, &named);

	return err ? err : server_join(volume, &named, returns);
}

int rbx_volume_add_server(struct rbx_volume *volume, const char *server)
{
	struct rbx_server_name named = { 0 };
	int err = name_take(&server, &named);

	if (!err && *server)
		err = -EINVAL; /* it is more than one */
	if (!err)
		err = far_check(volume, &named);
	if (err)
		return named_error(&named, err);
	if (mutex_lock_interruptible(&volume->add_lock))
		return named_error(&named, -EINTR);
	err = server_join(volume, &named, false);
	if (!err)
		rbx_volume_joins_note(volume, &named.address);
	mutex_unlock(&volume->add_lock);
	return err ? named_error(&named, err) : 0;
}
EXPORT_SYMBOL_GPL(rbx_volume_add_server);

void rbx_volume_servers_close(struct rbx_volume *volume)
{
	rbx_volume_servers_leave(&volume->control);
	if (volume->ctx)
		rbx_client_close(&volume->client);
	kvfree(volume->control.servers);
}
