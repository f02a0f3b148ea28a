/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader.c - opens and closes a volume that is only read, see reader.h.
 *
 * The volume is looked for as by anybody (client/crowd.h), which tells its id and what it is like.
 * Then all servers that are there are connected, each is asked, and the volume is open as soon as
 * something may be believed.
 */
#include "lib/volume/reader.h"

#include <stdlib.h>

#include "client/at_once.h"
#include "lib/volume/crowd.h"

#define WAIT_NS 2000000ull

/* Asks for its record. */
static int look(struct rbx_reader *reader, const char *servers)
{
	struct rbx_volume *volume = reader->volume;
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int err = rbx_named_init(&named, volume->options.name, "a client that reads");

	if (!err)
		err = rbx_crowd_open_there(volume->ctx, servers, &crowd);
	if (err)
		return err;
	err = rbx_crowd_look(crowd, &named);
	rbx_crowd_close(crowd);
	if (err)
		return err;
	reader->record = named.record;
	if (!named.record.epoch)
		return rbx_error(-ENOENT, "volume %s was never made to its end", named.name);
	if (!named.record.replicas || named.record.replicas > RBX_REPLICAS_MAX ||
	    (rbx_named_has_tails(&named) && named.record.replicas == 1))
		return rbx_error(-EPROTO, "a server says that volume %s has %u replicas",
				 named.name, named.record.replicas);
	volume->options.replicas = named.record.replicas;
	volume->options.checksums = rbx_named_has_tails(&named);
	return 0;
}

static int tables_make(struct rbx_reader *reader)
{
	uint64_t slabs;
	int err = rbx_volume_memory_make(reader->volume, reader->record.size_bytes,
					 reader->record.slab_bytes);

	if (err)
		return err;
	slabs = reader->volume->control.flow.map->slab_max;
	reader->copies = calloc(slabs * RBX_SLOTS_MAX, sizeof(*reader->copies));
	return reader->copies ? 0 : rbx_error(-ENOMEM, "out of memory");
}

static bool may_read(struct rbx_reader *reader)
{
	bool may = false;

	rbx_lock(&reader->lock);
	for (uint32_t i = 0; i < RBX_LOAD_ACQUIRE(&reader->server_count); i++)
		may |= reader->servers[i].until_ns > rbx_now_ns();
	rbx_unlock(&reader->lock);
	return may;
}

/* Why the first one is not there that is not; 0: those that were tried are. */
static int first_error(struct rbx_reader *reader, char why[RBX_ERROR_TEXT_MAX])
{
	int err = 0;

	rbx_text_copy(why, RBX_ERROR_TEXT_MAX, "those that are there do not answer");
	rbx_lock(&reader->lock);
	for (uint32_t i = 0; i < RBX_LOAD_ACQUIRE(&reader->server_count) && !err; i++) {
		err = reader->servers[i].open_err;
		if (err)
			rbx_text_copy(why, RBX_ERROR_TEXT_MAX, reader->servers[i].why);
	}
	rbx_unlock(&reader->lock);
	return err;
}

/* All have as many readers as they may have. */
static bool are_busy(struct rbx_reader *reader)
{
	bool are = true;

	rbx_lock(&reader->lock);
	for (uint32_t i = 0; i < RBX_LOAD_ACQUIRE(&reader->server_count); i++)
		are &= reader->servers[i].open_err == -EBUSY;
	rbx_unlock(&reader->lock);
	return are;
}

/* Until something may be believed. The thread of the connections tries again those that are
 * away. */
static int may_read_wait(struct rbx_reader *reader)
{
	uint64_t until_ns = rbx_now_ns() + RBX_READER_LAG_NS +
			    2 * rbx_context_options(reader->volume->ctx)->peer_timeout_ms *
				    1000000ull;
	char why[RBX_ERROR_TEXT_MAX];
	int err;

	while (!may_read(reader)) {
		if (are_busy(reader) || rbx_now_ns() >= until_ns) {
			err = first_error(reader, why);
			return rbx_error(err == -EBUSY ? err : -EHOSTUNREACH,
					 "volume %s: too few of its servers can be asked to read it: %s",
					 reader->record.name, why);
		}
		rbx_pause_ns(WAIT_NS);
	}
	return 0;
}

static int reader_start(struct rbx_reader *reader, const char *servers)
{
	int err = look(reader, servers);

	if (!err)
		err = rbx_pool_open(&reader->pool, servers);
	if (!err)
		err = rbx_reader_names_take(reader);
	if (!err)
		err = tables_make(reader);
	if (err)
		return err;
	rbx_reader_connect(reader);
	err = rbx_reader_watch_start(reader);
	if (!err)
		err = rbx_reader_connects_start(reader);
	return err ? err : may_read_wait(reader);
}

/* Of a slab: how many servers may be read that have it. */
static uint32_t copies_count(const struct rbx_reader *reader, uint32_t slab_index, bool *any)
{
	const struct rbx_reader_copy *copies = rbx_reader_copies(reader, slab_index);
	uint32_t i, count = 0;

	*any = false;
	for (i = 0; i < RBX_SLOTS_MAX; i++) {
		if (!copies[i].server)
			continue;
		*any |= reader->servers[copies[i].server - 1].is_in;
		count += reader->servers[copies[i].server - 1].until_ns > rbx_now_ns();
	}
	return count;
}

void rbx_reader_census(struct rbx_reader *reader, struct rbx_census *census)
{
	uint32_t i, count, replicas = reader->record.replicas;
	bool any, has_lost;

	*census = (struct rbx_census){
		.slabs = rbx_volume_map_slabs(reader->volume->control.flow.map),
	};
	for (i = 0; i < RBX_LOAD_ACQUIRE(&reader->server_count); i++) {
		rbx_lock(&reader->lock);
		census->servers += reader->servers[i].is_in;
		census->servers_up += reader->servers[i].is_in && reader->servers[i].peer &&
				      !reader->servers[i].is_down;
		rbx_unlock(&reader->lock);
	}
	for (i = 0; i < census->slabs; i++) {
		rbx_lock(&reader->lock);
		count = copies_count(reader, i, &any);
		has_lost = reader->has_lost;
		rbx_unlock(&reader->lock);
		census->blank += !any && !has_lost;
		census->whole += any && count >= replicas;
		census->dead += !count && (any || has_lost);
		census->last += any && count == 1 && replicas > 1;
	}
}

static struct rbx_reader *reader_make(struct rbx_volume *volume)
{
	struct rbx_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->volume = volume;
	reader->servers = calloc(RBX_SERVERS_MAX, sizeof(*reader->servers));
	reader->heard = calloc(RBX_SERVERS_MAX, sizeof(*reader->heard));
	reader->members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*reader->members));
	rbx_lock_init(&reader->lock);
	rbx_monitor_init(&reader->monitor);
	return reader;
}

int rbx_reader_open(struct rbx_volume *volume, const char *servers)
{
	volume->reader = reader_make(volume);
	if (!volume->reader)
		return rbx_error(-ENOMEM, "out of memory");
	return volume->reader->servers && volume->reader->heard && volume->reader->members ?
		       reader_start(volume->reader, servers) :
		       rbx_error(-ENOMEM, "out of memory");
}

void rbx_reader_stop(struct rbx_reader *reader)
{
	rbx_reader_connects_stop(reader);
	rbx_reader_watch_stop(reader);
}

void rbx_reader_free(struct rbx_reader *reader)
{
	if (reader->servers)
		rbx_reader_leave(reader);
	rbx_pool_close(reader->pool);
	rbx_monitor_destroy(&reader->monitor);
	free(reader->copies);
	free(reader->members);
	free(reader->heard);
	free(reader->servers);
	free(reader);
}
