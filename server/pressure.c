/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pressure.c - gives memory back if the host itself runs short.
 *
 * The kernel says how much memory is available without swapping (MemAvailable), and how
 * much the control group of this process has left. If less than a reserve of 1/64 of the
 * whole is left, no more slabs are lent. If less than half of the reserve is left, the
 * server asks its clients once a second for as many slabs as are missing. It asks for
 * slabs above a limit that a reload has lowered as well, but without a deadline.
 *
 * A server that is told to lend more than there is at all does not start. Otherwise it
 * would be killed later, and all that it has lent would be lost.
 */
#include <errno.h>

#include "lib/error.h"
#include "server/host_memory.h"
#include "server/state.h"

#define RESERVE_DIVISOR 64
#define CHECK_INTERVAL_NS 1000000000ull

/* A memory file may be on pages that were set aside, or on another device. */
static bool takes_host_memory(const struct rbx_server *s)
{
	return !rbx_remembers(&s->remembered) || s->remembered.file.is_of_machine;
}

static int host_memory_check(const struct rbx_server *s,
			     const struct rbx_server_options *o, uint64_t lent_bytes)
{
	uint64_t memory_bytes = o->memory_bytes;
	struct rbx_host_memory memory;

	if (o->overcommit || !takes_host_memory(s) || !rbx_host_memory_read(&memory))
		return 0;
	if (memory_bytes > memory.total_bytes)
		return rbx_error(-ENOMEM,
				 "cannot lend %llu MiB: %s has %llu MiB in all; "
				 "lend less, or give overcommit (--overcommit) "
				 "if it will have more",
				 (unsigned long long)memory_bytes >> 20,
				 memory.where,
				 (unsigned long long)memory.total_bytes >> 20);
	if (memory_bytes > lent_bytes + memory.available_bytes)
		rbx_log(&s->log,
			"%llu MiB are to be lent and %s has %llu MiB available now: "
			"only that much can be lent",
			(unsigned long long)memory_bytes >> 20, memory.where,
			(unsigned long long)(lent_bytes + memory.available_bytes) >> 20);
	return 0;
}

/* Checks the machine first, as larger slabs do not give it more memory. */
int rbx_memory_check(const struct rbx_server *s, const struct rbx_server_options *o,
		     uint64_t lent_bytes)
{
	int err = host_memory_check(s, o, lent_bytes);

	if (err)
		return err;
	if (o->memory_bytes / o->slab_bytes > RBX_LENT_SLABS_MAX)
		return rbx_error(-EINVAL,
				 "memory of %llu bytes is more than %u slabs: "
				 "take larger slabs",
				 (unsigned long long)o->memory_bytes,
				 RBX_LENT_SLABS_MAX);
	return 0;
}

bool rbx_host_has_room(const struct rbx_server *s)
{
	struct rbx_lender_counts counts;
	struct rbx_host_memory memory;
	uint64_t wanted_count;

	rbx_lender_counts(s->lender, &counts);
	/* Slabs that are being prepared are promised, but their memory is not taken yet. */
	wanted_count = 1ull + counts.slabs_preparing;
	return !takes_host_memory(s) || !rbx_host_memory_read(&memory) ||
	       memory.available_bytes >= wanted_count * s->options.slab_bytes +
						 memory.total_bytes /
							 RESERVE_DIVISOR;
}

/* How many slabs are missing if the host is short of memory; else 0. */
static uint64_t host_wants(const struct rbx_server *s)
{
	struct rbx_host_memory memory;
	uint64_t reserve_bytes;

	if (!takes_host_memory(s) || !rbx_host_memory_read(&memory))
		return 0;
	reserve_bytes = memory.total_bytes / RESERVE_DIVISOR / 2;
	if (memory.available_bytes >= reserve_bytes)
		return 0;
	return (reserve_bytes - memory.available_bytes + s->options.slab_bytes - 1) /
	       s->options.slab_bytes;
}

/* Asks for so many more than are asked for already. */
static void ask(struct rbx_server *s, uint64_t wanted_count, uint32_t asked_count,
		uint64_t now_ns, uint64_t grace_ns, const char *why)
{
	uint64_t count = RBX_MIN(wanted_count, RBX_LENT_SLABS_MAX);

	if (count <= asked_count)
		return;
	asked_count = rbx_lender_shrink(s->lender, (uint32_t)count - asked_count, now_ns,
					grace_ns);
	if (asked_count)
		rbx_log(&s->log, "%s: asked for %u slabs", why, asked_count);
}

/* A host that is short of memory needs it soon, so there is a deadline. A limit that was
 * lowered has none: clients give slabs back when they can. */
void rbx_pressure_tick(struct rbx_server *s, uint64_t now_ns)
{
	struct rbx_lender_counts counts;

	if (now_ns - s->pressure_checked_ns < CHECK_INTERVAL_NS)
		return;
	s->pressure_checked_ns = now_ns;
	rbx_lender_withdraw(s->lender);
	rbx_lender_counts(s->lender, &counts);
	ask(s, host_wants(s), counts.slabs_due, now_ns, RBX_EVICT_GRACE_NS,
	    "this host is short of memory");
	rbx_lender_counts(s->lender, &counts);
	ask(s, rbx_lender_surplus(s->lender), counts.slabs_asked, now_ns,
	    RBX_LENDER_NEVER_NS, "more is lent than the new limit allows");
}
