/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sites.h - the places in the code where a simulated world may go wrong.
 *
 * A site has a name, a chance and a budget. It is asked each time that it could fire. There
 * are two levels: a run first draws which sites are on, each with a chance of one in four,
 * and only those fire. So rare combinations get runs of their own, and within these they are
 * frequent.
 *
 *	if (rbx_sim_site(RBX_SIM_SITE_late_completion))
 *		delay_ns += rbx_sim_site_draw(RBX_SIM_SITE_late_completion,
 *					      1000, 1000000);
 *
 * A new fault is a line here and the call where it happens.
 */
#ifndef RBX_SIM_SITES_H
#define RBX_SIM_SITES_H

#include "core/port.h"

/*
 * X(name, chance, budget, what): chance in millionths each time that it is asked; budget: how
 * often at most in a run, 0: no limit.
 */
#define RBX_SIM_SITES(X)                                                      \
	/* Asked by the device, for each work request or completion. */       \
	X(late_completion, 20000, 0, "a completion waits for up to 1 ms")     \
	X(late_placement, 50000, 0,                                           \
	  "written bytes are placed late, in any order")                      \
	X(scribble, 500000, 0,                                                \
	  "a buffer of ours holds junk between post and completion")          \
	X(receiver_not_ready, 2000, 16,                                       \
	  "a send finds no receive in time and fails")                        \
	X(retry_exceeded, 1000, 16, "a work request is never answered")        \
	X(stray_write, 500000, 0,                                             \
	  "a write under way when its queue pair ends is placed later")       \
	X(qp_error, 1000, 16, "a queue pair fails; all posted is flushed")     \
	X(no_flush, 100000, 8,                                                \
	  "a queue pair that has failed gives back nothing that was posted")  \
	X(stale_key, 3000, 16, "a key is refused as if it had been revoked")   \
	X(bad_memory, 3000, 48,                                               \
	  "our device cannot reach a buffer, and has sent nothing of it")     \
	X(bad_memory_late, 3000, 48,                                          \
	  "the same, when a part of it has been written")                     \
	X(post_full, 1000, 0, "a post takes only a part of its chain")        \
	X(message_cut, 10000, 8,                                              \
	  "a connection ends with a message under way, which may arrive")     \
	/* Asked for each connection. */                                      \
	X(shallow_qp, 300000, 0, "a queue pair is less deep than asked for")  \
	X(connect_refused, 100000, 16, "no listener accepts")                 \
	X(connect_rejected, 100000, 0, "a connection is rejected for now")    \
	X(connect_timeout, 100000, 8, "a connection request gets no answer")  \
	X(connect_cut, 100000, 8, "the connection ends while it is made")     \
	/* Asked by the scenario, now and then. */                            \
	X(server_crash, 300000, 3, "a server stops for good")                 \
	X(server_restart, 300000, 3, "a server stops and starts again")       \
	X(partition, 300000, 6, "a server is cut off for a while")            \
	X(outage, 100000, 5,                                                  \
	  "most servers are cut off together, or a client from all of them")  \
	X(slow_node, 300000, 8, "a node stops for a while")                   \
	X(pressure, 300000, 8, "a server's host runs short of memory")        \
	X(server_drain, 200000, 3, "a server is asked to end")                \
	X(rack_crash, 300000, 3, "all servers of a rack stop, and start again") \
	X(client_crash, 100000, 2, "a client stops; another takes its place") \
	X(rival, 700000, 4,                                                   \
	  "a client takes the volume of one that crashed, and lives on when that is back") \
	X(volume_grows, 300000, 6,                                            \
	  "a named volume becomes larger while it is open")                   \
	X(volume_reserved, 500000, 0,                                         \
	  "a named volume has the memory of all its slabs from the beginning") \
	X(client_cut, 300000, 8,                                              \
	  "a client is cut off from all servers, within its lease")          \
	X(slow_client, 300000, 8, "a client stops, within its lease")         \
	X(store_away, 30000, 6,                                               \
	  "the store that has the servers of a pool is away, for all or for one") \
	/* Asked by that store. */                                            \
	X(store_reply_lost, 50000, 24,                                        \
	  "it does what is asked, and the answer is lost")                    \
	X(store_refuses, 50000, 24, "it reports an error, and does nothing")  \
	X(store_forgets, 100000, 8, "it has forgotten what a watch has missed") \
	/* Asked by the host. */                                              \
	X(staging_short, 500000, 0,                                           \
	  "a client has very little staging memory")                          \
	X(memory_slow, 200000, 0,                                             \
	  "memory of a slab takes up to 0.3 s to be made or emptied")          \
	X(revoked_unasked, 200000, 16,                                        \
	  "a server takes a slab back without asking, and lends it next")     \
	X(memory_shortage, 50000, 32, "a server cannot allocate a slab")      \
	X(clock_skew, 700000, 0, "a node's clock runs up to 1 % off")         \
	X(preempt, 20000, 0, "a thread is preempted at an atomic or a lock")

enum rbx_sim_site {
#define X(name, chance, budget, what) RBX_SIM_SITE_##name,
	RBX_SIM_SITES(X)
#undef X
	RBX_SIM_SITES_COUNT,
};

/* "late-completion"; with dashes, as on the command line. */
const char *rbx_sim_site_name(enum rbx_sim_site site);
const char *rbx_sim_site_purpose(enum rbx_sim_site site);
/* False: there is no such site. */
bool rbx_sim_site_find(const char *name, enum rbx_sim_site *site);

/* Before a run: none is on. */
void rbx_sim_sites_reset(uint64_t seed);
/* Lets the site take part in the draw, or be on for certain. */
void rbx_sim_site_allow(enum rbx_sim_site site, bool for_sure);
/* On in this run, with this chance, whatever is drawn; 0: off. */
void rbx_sim_site_force(enum rbx_sim_site site, uint32_t of_a_million);
/* Draws which of the allowed sites are on. */
void rbx_sim_sites_draw(void);
/* From now on nothing goes wrong: the world heals. */
void rbx_sim_sites_heal(void);

bool rbx_sim_site_is_on(enum rbx_sim_site site);
uint32_t rbx_sim_site_chance(enum rbx_sim_site site);
uint64_t rbx_sim_site_fired(enum rbx_sim_site site);

/* Whether it goes wrong here and now. */
bool rbx_sim_site(enum rbx_sim_site site);
/* For a site that is so frequent that it counts by itself when it goes wrong, and would fill
 * the trace with lines. */
void rbx_sim_site_struck(enum rbx_sim_site site);
/* How much: from low to high, by the site's own generator. */
uint64_t rbx_sim_site_draw(enum rbx_sim_site site, uint64_t low, uint64_t high);

/*
 * Whether a node is harmed here and now, in a way that may cost a replica: only if the world
 * allows it and all promises have to survive it. The harm was noticed by all that it concerns
 * after felt_ns. Without a world all nodes may be harmed.
 */
bool rbx_sim_site_harms(enum rbx_sim_site site, uint32_t node,
			uint64_t felt_ns);

struct rbx_sim_judge {
	bool (*may_harm)(uint32_t node);
	void (*harmed)(uint32_t node, uint64_t felt_ns);
};
/* Borrows it. */
void rbx_sim_judge_by(const struct rbx_sim_judge *judge);

#endif
