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
#include "lib/volume/crowd.h"

/* ---- What the servers know -----------------------------------------------------------*/

static bool is_member(const struct rbx_wire_record *record, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < record->members_count; i++)
		if (record->incarnations[i] == incarnation)
			return true;
	return false;
}

/* There is one replica of each slab: at a server that is missing may be any of them. */
static int all_there_check(const struct rbx_wire_record *record, const struct rbx_crowd *crowd)
{
	uint32_t i, missing = record->members_count;
	bool is_half = false;

	for (i = 0; i < crowd->count; i++) {
		if (!is_member(record, rbx_session_incarnation(crowd->sessions[i])))
			continue;
		missing -= crowd->has[i];
		is_half |= !crowd->has[i];
	}
	if (!missing)
		return 0;
	if (is_half)
		return rbx_error(-ENOENT, "volume %s was not made to its end, or not removed to its end: remove it",
				 record->name);
	return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are not among those given, or were restarted: name all of them",
			 record->name, record->members_count, missing);
}

/* Those that have it, as a list; or NULL. */
static char *members_print(const struct rbx_crowd *crowd)
{
	char *text = calloc(crowd->count, RBX_POOL_ADDRESS_BYTES);
	uint32_t i;

	for (i = 0; text && i < crowd->count; i++) {
		if (!crowd->has[i])
			continue;
		if (*text)
			strcat(text, ",");
		strcat(text, crowd->names[i]);
	}
	return text;
}

static void holder_describe(char holder[RBX_WIRE_HOLDER_BYTES])
{
	char host[40] = "";

	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "?");
	snprintf(holder, RBX_WIRE_HOLDER_BYTES, "%s, process %d", host, (int)getpid());
}

static int begin(struct rbx_named *named, struct rbx_crowd *crowd, bool take_over, char **members)
{
	int err = rbx_crowd_look(crowd, named);

	if (!err)
		err = all_there_check(&named->record, crowd);
	if (!err)
		err = rbx_named_begin(named, take_over);
	if (err)
		return err;
	*members = members_print(crowd);
	return *members ? 0 : rbx_error(-ENOMEM, "out of memory");
}

int rbx_volume_named_begin(struct rbx_volume *volume, const char *servers, char **members)
{
	struct rbx_named *named = calloc(1, sizeof(*named));
	char holder[RBX_WIRE_HOLDER_BYTES];
	struct rbx_crowd *crowd;
	int err;

	if (!named)
		return rbx_error(-ENOMEM, "out of memory");
	volume->control.named = named;
	holder_describe(holder);
	err = rbx_named_init(named, volume->options.name, holder);
	if (!err)
		err = rbx_crowd_open(volume->ctx, servers, &crowd);
	if (err)
		return err;
	err = begin(named, crowd, volume->options.take_over, members);
	rbx_crowd_close(crowd);
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
