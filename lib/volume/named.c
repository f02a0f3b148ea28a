/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.c - opens a named volume, see named.h.
 *
 * The servers are asked what they know of it before any of them is connected as a peer: for the
 * epoch, and which of them have it. Then each peer is granted the volume as it is connected
 * (client/servers.c), the record is accepted, and the slabs are found.
 */
#include "lib/volume/named.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/queue_pairs.h"
#include "include/rdmabox/pool.h"
#include "lib/session/sessions.h"

/* ---- Names of servers ----------------------------------------------------------------*/

int rbx_name_list_make(struct rbx_name_list *list, const char *servers)
{
	struct rbx_pool_member *members = calloc(RBX_MEMBERS_MAX, sizeof(*members));
	struct rbx_pool *pool;
	size_t count, i;
	int err;

	*list = (struct rbx_name_list){ 0 };
	err = members ? rbx_pool_open(&pool, servers) : rbx_error(-ENOMEM, "out of memory");
	if (err) {
		free(members);
		return err;
	}
	count = rbx_pool_members_get(pool, members, RBX_MEMBERS_MAX);
	rbx_pool_close(pool);
	if (count > RBX_MEMBERS_MAX)
		err = rbx_error(-EINVAL, "servers \"%s\": a named volume has at most %u",
				servers, RBX_MEMBERS_MAX);
	for (i = 0; i < count && !err; i++) {
		list->names[i] = strdup(members[i].address);
		if (!list->names[i])
			err = rbx_error(-ENOMEM, "out of memory");
		else
			list->count++;
	}
	if (!err && !count)
		err = rbx_error(-ENOENT, "pool \"%s\" has no servers", servers);
	free(members);
	if (err)
		rbx_name_list_free(list);
	return err;
}

void rbx_name_list_free(struct rbx_name_list *list)
{
	while (list->count)
		free(list->names[--list->count]);
}

/* ---- A session to ask something ------------------------------------------------------*/

/* If it is lost its one call fails, and shows it. */
static void lost(void *user, const char *reason)
{
	(void)user;
	(void)reason;
}

static void evict(void *user, const struct rbx_eviction *eviction)
{
	(void)user;
	(void)eviction;
}

int rbx_named_session_open(struct rbx_context *ctx, const char *address,
			   struct rbx_session **session)
{
	const struct rbx_session_events events = { lost, evict, NULL };

	return rbx_session_open_name(rbx_context_sessions(ctx), address, &events, session);
}

/* ---- What the servers know -----------------------------------------------------------*/

/* The servers that have the volume, and those that have not. */
struct members {
	char *text; /* of those that have it; as long as the list of all */
	struct rbx_member_set have;
	struct rbx_member_set have_not;
};

static void member_add(struct members *members, const char *address, uint64_t incarnation)
{
	if (members->have.count)
		strcat(members->text, ",");
	strcat(members->text, address);
	rbx_member_set_add(&members->have, incarnation);
}

static int look(struct rbx_volume *volume, const char *address, struct members *members)
{
	struct rbx_named *named = volume->control.named;
	struct rbx_wire_volume found;
	struct rbx_session *session;
	int err = rbx_named_session_open(volume->ctx, address, &session);

	if (err)
		return err;
	err = rbx_named_look(named, session, &found);
	if (!err)
		err = rbx_named_heard(named, &found);
	if (!err) {
		member_add(members, address, rbx_session_incarnation(session));
	} else if (err == -ENOENT || err == -EACCES) { /* or it is another client's */
		err = -ENOENT;
		rbx_member_set_add(&members->have_not, rbx_session_incarnation(session));
	}
	rbx_session_close(session);
	return err == -ENOENT ? 0 : err;
}

/* There is one replica of each slab: at a server that is missing may be any of them. */
static int all_there_check(const struct rbx_wire_record *record, const struct members *members)
{
	uint32_t i, missing = 0;
	bool is_half = false;

	for (i = 0; i < record->members_count; i++) {
		missing += !rbx_member_set_has(&members->have, record->incarnations[i]);
		is_half |= rbx_member_set_has(&members->have_not, record->incarnations[i]);
	}
	if (!missing)
		return 0;
	if (is_half)
		return rbx_error(-ENOENT, "volume %s was not made to its end, or not removed to its end: remove it",
				 record->name);
	return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are not among those given, or were restarted: name all of them",
			 record->name, record->members_count, missing);
}

static int members_find(struct rbx_volume *volume, const struct rbx_name_list *list,
			struct members *members)
{
	const struct rbx_wire_record *record = &volume->control.named->record;
	uint32_t i;
	int err = 0;

	for (i = 0; i < list->count && !err; i++)
		err = look(volume, list->names[i], members);
	if (!err && !members->have.count)
		err = rbx_error(-ENOENT, "there is no volume %s on these servers", record->name);
	return err ? err : all_there_check(record, members);
}

static void holder_describe(char holder[RBX_WIRE_HOLDER_BYTES])
{
	char host[40] = "";

	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "?");
	snprintf(holder, RBX_WIRE_HOLDER_BYTES, "%s, process %d", host, (int)getpid());
}

int rbx_volume_named_begin(struct rbx_volume *volume, const char *servers, char **out)
{
	struct rbx_named *named = calloc(1, sizeof(*named));
	struct members members = { .text = calloc(RBX_MEMBERS_MAX, RBX_POOL_ADDRESS_BYTES) };
	char holder[RBX_WIRE_HOLDER_BYTES];
	struct rbx_name_list list = { 0 };
	int err = named && members.text ? 0 : rbx_error(-ENOMEM, "out of memory");

	volume->control.named = named;
	holder_describe(holder);
	if (!err)
		err = rbx_named_init(named, volume->options.name, holder);
	if (!err)
		err = rbx_name_list_make(&list, servers);
	if (!err)
		err = members_find(volume, &list, &members);
	if (!err)
		err = rbx_named_begin(named, volume->options.take_over);
	rbx_name_list_free(&list);
	if (err)
		free(members.text);
	else
		*out = members.text;
	return err;
}

/* ---- With the servers connected ------------------------------------------------------*/

static struct rbx_session *session_at(struct rbx_volume *volume, uint32_t index)
{
	return rbx_peer_session(volume->control.servers[index].peer);
}

int rbx_volume_named_take(struct rbx_volume *volume)
{
	struct rbx_volume_control *control = &volume->control;
	struct rbx_named *named = control->named;
	uint32_t i;
	int err = rbx_named_settle(named);

	for (i = 0; i < control->server_count && !err; i++)
		err = rbx_named_accept(named, session_at(volume, i));
	if (!err && !rbx_named_is_chosen(named))
		err = rbx_error(-EBUSY, "volume %s: too few of its servers accept this client",
				named->record.name);
	for (i = 0; i < control->server_count && !err; i++)
		err = rbx_named_find(named, session_at(volume, i), &control->upkeep, i);
	return err;
}

void rbx_volume_named_free(struct rbx_volume *volume)
{
	free(volume->control.named);
}
