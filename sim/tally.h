/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tally.h - counts how often a run has really checked each promise.
 *
 * A check that never looks at anything never fails. So each check is counted where it looks.
 * The conditions that make a check meaningful (a full window, a rebuild, an expired lease)
 * are counted where they happen. tests/sim/seeds.sh requires that none of these stays at 0
 * over the seeds of ./check, and the same of the faults (sites.h).
 *
 * A new one is a line here and the call where it happens.
 */
#ifndef RBX_SIM_TALLY_H
#define RBX_SIM_TALLY_H

#include "core/port.h"

#define RBX_SIM_TALLIES(X)                                                    \
	X(requests, "requests ended, each for the first time")                \
	X(units_read, "units that a read returned, each allowed by the writes") \
	X(replicas_compared, "replicas held beside another in the end")       \
	X(replicas_at_open, "the same, of named volumes that were just opened") \
	X(pages_damaged, "pages damaged at the server that is read, and repaired") \
	X(memory_lent, "memory lent: to one, and zeros")                      \
	X(slabs_looked_at, "slabs looked at: no memory is part of two")       \
	X(windows_full, "looks at a window with no room for a page")          \
	X(keys_revoked, "work requests refused for a key that had ended")     \
	X(given_back, "slabs given back by their holders")                    \
	X(loans_unheard, "slabs taken back at a resume, never heard of")      \
	X(leases_expired, "sessions ended for silence")                       \
	X(resumes, "sessions resumed")                                        \
	X(retries, "fragments sent again")                                    \
	X(failed_here, "requests that failed for bad memory, and no other")   \
	X(failovers, "reads that went on to another replica")                 \
	X(drains_done, "drains that ended with nothing lent")                 \
	X(drains_cut, "drains that ran out of time")                          \
	X(program_polls, "polls of a program by itself that found something") \
	X(messages, "messages heard, each the next one")                      \
	X(discards, "slabs discarded, with what was written to them")         \
	X(closed_in_use, "volumes closed with requests outstanding")          \
	X(plugs, "batches held back by a plug")                               \
	X(staging_full, "copies that waited for staging memory")              \
	X(rebuilds, "times that all replicas were there again")               \
	X(moved, "replicas that moved to servers with more memory free")      \
	X(racks_survived, "racks lost, and no page with them")                \
	X(volumes_taken, "named volumes of a crashed client, taken by another") \
	X(rivals, "named volumes of a crashed client, opened by a rival")     \
	X(formers, "rivals that had the volume open when it was taken over")  \
	X(beside_reads, "reads beside a writer, none of them older than promised") \
	X(beside_failed, "the same that failed, as too few servers could be asked") \
	X(former_requests, "requests of former writers that ended after that") \
	X(opened_without, "named volumes opened without a server that was lost since") \
	X(returned, "servers that were out, back in a named volume that was open") \
	X(newcomers, "empty servers that came to a named volume that was open") \
	X(came_again, "servers that had FAILED, and serve an open volume again") \
	X(volumes_over, "named volumes of which too few servers were left to go on") \
	X(volumes_go_on, "the same, that went on when enough were back")      \
	X(away_requests, "requests that failed for that")                     \
	X(came_back, "replicas whose servers were silent, in use again")      \
	X(extents_kept, "extents of servers that return, used as they are")   \
	X(extents_stale, "the same, copied as they have missed writes")        \
	X(announcements_over, "leases of servers in a store that ran out")   \
	X(done_without_store, "requests of open volumes that ended while a store was away") \
	X(reserved, "looks at reserved volumes, of which each slab had memory") \
	X(grown, "named volumes that became larger while they were open")     \
	X(grown_unheard, "the same, of a client that died before it knew")    \
	X(renames, "named volumes that got another name")                     \
	X(slabs_restored, "slabs that were there again after a restart")      \
	X(slabs_lost, "slabs that lost their last replica, if allowed")       \
	X(lost_requests, "requests that failed for that, and none of old")    \
	X(holes_looked_at, "looks at a slab that was lost and written since") \
	X(given_up, "times that servers were given up")                       \
	X(kept_by_decree, "slabs that others had, and that were read")        \
	X(lost_by_decree, "slabs that no other one had, and that failed")     \
	X(opened_by_gone, "volumes opened without those that had given up the rest") \
	X(healed_under_load, "requests outstanding when the world healed")    \
	X(endpoint_messages, "messages over endpoints, each the next one")    \
	X(endpoint_reads, "reads over endpoints: what was written before")    \
	X(endpoint_failures, "operations of endpoints that failed")           \
	X(endpoint_paced, "operations of endpoints that are paced")           \
	X(endpoint_keys_ended, "exports that ended, and were not written to")

enum rbx_sim_tally {
#define X(name, what) RBX_SIM_TALLY_##name,
	RBX_SIM_TALLIES(X)
#undef X
	RBX_SIM_TALLIES_COUNT,
};

extern uint64_t rbx_sim_tallies[RBX_SIM_TALLIES_COUNT];

static inline void rbx_sim_tally(enum rbx_sim_tally tally, uint64_t count)
{
	rbx_sim_tallies[tally] += count;
}

/* "units-read"; with dashes, as for sites. */
const char *rbx_sim_tally_name(enum rbx_sim_tally tally);

#endif
