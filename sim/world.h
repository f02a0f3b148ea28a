/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.h - the machines of a run: memory servers, and clients with a volume and
 * a load each.
 *
 *	world.c    makes them, runs them, and heals all that was done to them
 *	server.c   a memory server: start, stop, loss of power
 *	client.c   a context and a volume with options drawn from the seed
 *	load.c     what a client's program does, and what it demands
 *	loop.c     its event loop, if it polls by itself
 *	talk.c     what it and the programs that serve say to each other
 *	visit.c    volumes that it opens and closes beside its own
 *	harm.c     faults of whole machines, within what is promised to survive
 *	client_cut.c  a client that reaches no server for a while
 *	rival.c    a former writer of a client's named volume, which lives on
 *	outage.c   servers that are away together, and come back
 *	announced.c  servers that announce themselves in a store, which is away at times
 *	beside.c   programs that only read a client's named volume
 *	growth.c   named volumes that become larger while they are open
 *	comings.c  counts servers that come to named volumes, and come again
 *	racks.c    servers in racks, which are lost as a whole
 *	given_up.c servers that are gone in the end, and are given up
 *	drain.c    a server that is asked to end
 *	check.c    invariants after every event
 *	replicas.c whether replicas are equal
 *	finish.c   what is demanded in the end
 *	endpoint.c a world of its own: programs without a server (endpoint.h)
 *
 * Node 0 is the director: a fiber that starts machines, waits, and does harm.
 */
#ifndef RBX_SIM_WORLD_H
#define RBX_SIM_WORLD_H

#include "include/rdmabox/rdmabox.h"
#include "include/rdmabox/server.h"
#include "sim/fabric.h"
#include "sim/fiber.h"
#include "sim/oracle.h"
#include "sim/random.h"
#include "sim/sim.h"
#include "sim/sites.h"
#include "sim/tally.h"

#define RBX_SIM_SERVERS_MAX 64u
#define RBX_SIM_CLIENTS_MAX 16u
#define RBX_SIM_SERVERS_TEXT (RBX_SIM_SERVERS_MAX * 12u)
/* Writers of a volume, as the words name them: a client, a later one in its place, and from
 * here on the visits of one. */
#define RBX_SIM_VISITS_FIRST 112u
/* Slabs of a volume; half of them before it grows (client.c). */
#define RBX_SIM_SLABS_MAX 16u
/* Threads of a client's program, and requests that one of them has outstanding. */
#define RBX_SIM_THREADS_MAX 4u
#define RBX_SIM_DEPTH_MAX 64u

#define RBX_SIM_MS ((uint64_t)1000000) /* nanoseconds */

struct rbx_sim_server {
	uint32_t node;
	uint64_t memory_bytes;
	struct rbx_server *server; /* NULL: the machine has no power */
	struct rbx_announcement *announcement; /* NULL: none, or it has ended */
	uint32_t starts_count;
	bool is_for_good; /* off for good */
	struct rbx_sim_fiber *drain; /* the fiber that ends it; NULL: none does */
	bool is_draining;
};

struct rbx_lender_loan;
struct rbx_slab;
struct rbx_sim_client;

/* A request of a load, and all that its check needs. */
struct rbx_sim_slot {
	struct rbx_request request;
	struct rbx_sim_client *client;
	bool is_outstanding;
	uint32_t more_count; /* that its callback submits, one after another */
	uint32_t number; /* of the write */
	uint64_t submitted; /* moment of the oracle */
	uint64_t at_ns;
};

/* The load of a client's program. */
struct rbx_sim_load {
	uint32_t threads_count;
	uint32_t depth_count; /* of each thread */
	uint32_t read_percent;
	uint32_t unit_bytes; /* of offsets and lengths */
	uint32_t units_max; /* of one request */
	uint64_t hot_bytes; /* most requests go there; 0: everywhere */
	uint64_t think_ns_max; /* between bursts */
	bool has_flags; /* fences and the like */
};

struct rbx_sim_client {
	uint32_t index;
	uint32_t node;
	struct rbx_options options;
	struct rbx_volume_options volume_options;
	uint64_t size_bytes; /* of its volume: what has been acknowledged */
	uint64_t wanted_bytes; /* that a named volume is to grow to; no more: it is not */
	uint64_t window_bytes; /* the most that its options allow */
	struct rbx_context *ctx;
	struct rbx_volume *volume; /* NULL: not open */
	struct rbx_sim_load load;
	struct rbx_sim_oracle *oracle;
	struct rbx_random random;
	struct rbx_sim_slot *slots;
	char *buffers;
	uint32_t slots_count;
	uint32_t outstanding_count;
	uint64_t done_count;
	uint64_t failed_count;
	struct rbx_sim_waiters waiters; /* threads that want a slot */
	struct rbx_sim_fiber *threads[RBX_SIM_THREADS_MAX];
	uint32_t lives_count;
	bool is_open; /* its volume, and stays so */
	bool is_offered; /* servers, at this moment: */
	struct rbx_sim_fiber *offers; /* adds them to its named volume; or NULL */
	bool is_reserved; /* its named volume */
	bool is_growing; /* the same, by: */
	struct rbx_sim_fiber *grows; /* or NULL */
	bool is_made; /* its named volume */
	bool has_other_name; /* that volume, when it was opened last */
	bool is_renamed; /* that was tried in this life of the client, or is not wanted */
	/* It has crashed, its named volume had all replicas, and the record says so. */
	bool left_all_copies;
	uint32_t left_out_count; /* servers of that volume that were OUT then */
	/* The last moments when its volume was over, when servers of it were away, and when no
	 * server could be asked for what is in a slab (outage.c) */
	uint64_t over_at_ns, away_at_ns, unreadable_at_ns[RBX_SIM_SLABS_MAX];
	uint32_t left_in_count; /* and IN */
	uint32_t left_members_count; /* all of its servers */
	struct rbx_sim_fiber *starts; /* starts its machine again */
	struct rbx_sim_fiber *loop; /* of a program that polls itself; or NULL */
	bool loop_ends;
	struct rbx_sim_fiber *talk; /* sends messages to servers' programs; or NULL */
	struct rbx_random talk_random;
	struct rbx_sim_fiber *visits; /* opens other volumes; or NULL */
	struct rbx_random visit_random;
	struct rbx_volume *visited; /* the other volume; NULL: none */
	struct rbx_sim_fiber *discards; /* of a volume on demand; or NULL */
	struct rbx_random discard_random;
};

struct rbx_sim_world {
	const struct rbx_sim_options *options;
	const struct rbx_sim_fabric *fabric;
	struct rbx_random random;
	uint32_t servers_count;
	uint32_t racks_count; /* 0: servers say nothing of their place */
	uint32_t clients_count;
	uint64_t slab_bytes;
	uint32_t lease_ms;
	bool stopping; /* no more load and harm */
	bool one_replica; /* volumes have one replica, and survive no harm */
	bool is_named; /* volumes have names, and outlive their clients */
	bool has_memory_files; /* servers that restart are the same ones, and keep those volumes */
	bool has_readers; /* of these volumes, beside their clients */
	bool has_store; /* where servers announce themselves, and clients find them */
	bool may_lose; /* harm is done all the same, and slabs are lost */
	bool may_fail; /* harm is done all the same, requests fail, and nothing is lost */
	bool waits_bounded; /* harm comes singly, and each request ends in time */
	bool gives_up; /* in the end, servers are gone and are given up */
	bool is_quiet; /* no faults at all: a measurement */
	uint64_t requests_wanted;
	uint64_t others_done; /* by programs without a volume */
	struct rbx_sim_server servers[RBX_SIM_SERVERS_MAX];
	struct rbx_sim_client clients[RBX_SIM_CLIENTS_MAX];
};

extern struct rbx_sim_world rbx_sim_world;

/* world.c */
/* Runs main(arg) on a node and waits for it. */
void rbx_sim_on(uint32_t node, void *(*main)(void *arg), void *arg);
uint64_t rbx_sim_requests_done(void);

/* server.c */
void rbx_sim_server_start(struct rbx_sim_server *server);
void rbx_sim_server_stop(struct rbx_sim_server *server);
void rbx_sim_server_power_off(struct rbx_sim_server *server);
uint32_t rbx_sim_servers_up(void);
/* The node of a server, by the name of a peer, "n3:7000"; 0: it is none. */
uint32_t rbx_sim_node_of_peer(const struct rbx_peer *peer);
/* "n1:7000,n2:7000": the servers that have power; or all. Or where they announce themselves. */
void rbx_sim_servers_name(char *servers, bool all);
/* Slabs lent to all clients. Takes the server's lock: only from a fiber. */
uint64_t rbx_sim_server_lent(const struct rbx_sim_server *server);
/* The writer epoch that it has promised; 0: none. */
uint64_t rbx_sim_server_promised(const struct rbx_sim_server *server, uint64_t volume_id);
/* Whether it has all of a slab of a volume, by its labels. */
bool rbx_sim_server_has_slab(const struct rbx_sim_server *server, uint64_t volume_id,
			     uint32_t index);
/* The memory of it, or NULL. It says that these extents are behind. */
void *rbx_sim_server_slab(const struct rbx_sim_server *server, uint64_t volume_id, uint32_t index,
			  uint64_t behind);
/* The incarnation that the server of a node reports; 0: it has not started. */
uint64_t rbx_sim_server_incarnation(uint32_t node);

/* client.c */
void rbx_sim_client_draw(struct rbx_sim_client *client, uint32_t index);
void rbx_sim_client_open(struct rbx_sim_client *client);
void rbx_sim_client_close(struct rbx_sim_client *client);
void rbx_sim_client_add_server(struct rbx_sim_client *client,
			       const struct rbx_sim_server *server);
bool rbx_sim_client_is_whole(const struct rbx_sim_client *client);
/* Whether one server may be lost, but for what is on one server alone (first_copies.c). */
bool rbx_sim_client_survives_a_loss(const struct rbx_sim_client *client);
void rbx_sim_client_print(const struct rbx_sim_client *client);

/* The machine of a client fails; another one takes its place. */
void rbx_sim_client_power_off(struct rbx_sim_client *client);
void rbx_sim_client_power_on(struct rbx_sim_client *client);
/* Closes its named volume and opens it again, if it has replicas. */
void rbx_sim_client_open_anew(struct rbx_sim_client *client);
/* Waits until it has. */
void rbx_sim_client_has_started(struct rbx_sim_client *client);

/* named.c */
/* Makes it, makes it larger, renames it, or opens it. 0: it is open; another try does more. */
int rbx_sim_named_open(struct rbx_sim_client *client);
/* It is not the client's from here on: the checks would look into it. */
struct rbx_volume *rbx_sim_named_take(struct rbx_sim_client *client);
void rbx_sim_named_remove(struct rbx_sim_client *client);
/* The client is about to crash. */
void rbx_sim_named_left(struct rbx_sim_client *client);
/* Whether it cannot be opened any more if one of its servers is lost for good: it was made when few
 * servers had announced themselves. */
bool rbx_sim_named_needs_all(const struct rbx_sim_client *client);
/* How many servers the record of its volume names, or did when it was left. */
uint32_t rbx_sim_named_members(const struct rbx_sim_client *client);
/* How many servers are there, or start again, that it will take for new ones at addresses of which
 * it does not know who was there. */
uint32_t rbx_sim_named_strangers(const struct rbx_sim_client *client);
/* A server has come to it, or has returned. */
void rbx_sim_named_returned(struct rbx_volume *volume);
/* Counts what was used again at servers that were there again, also of a volume without a name. */
void rbx_sim_returns_tally(struct rbx_volume *volume);
/* Whether the next client may rely on it that all replicas are there: enough servers have accepted
 * a record that says so. Also of a volume without a name. */
bool rbx_sim_named_is_said(const struct rbx_volume *volume);

/* spare.c */
bool rbx_sim_all_survive_a_loss(void);
/* Whether a server may lose its memory now; begin to drain; end, which loses what it has for good.
 */
bool rbx_sim_may_be_emptied(void);
bool rbx_sim_may_be_one_fewer(void);
bool rbx_sim_may_end(void);
/* Whether a server that has drained may end. A client that has crashed meanwhile may not do without
 * it. */
bool rbx_sim_may_stop(void);

/* growth.c */

/* That a volume which is reserved has memory for all its slabs. */
void rbx_sim_growth_memory(const struct rbx_sim_client *client);
/* What its volume may grow to. */
uint64_t rbx_sim_growth_most(const struct rbx_sim_client *client);
/* Now and then. Returns whether it is about to become larger, or has become so just now. */
bool rbx_sim_growth_begins(struct rbx_sim_client *client);
void rbx_sim_growth_join(struct rbx_sim_client *client);
/* In the end: what has failed is tried until its servers agree on a size. */
void rbx_sim_growth_settles(struct rbx_sim_client *client);
/* It was opened: it has one of the sizes that it may have. */
void rbx_sim_growth_opened(struct rbx_sim_client *client);

/* comings.c */
/* Servers that have started without their memory are offered to its named volume, if it is open. */
void rbx_sim_comings_offer(struct rbx_sim_client *client);
void rbx_sim_comings_join(struct rbx_sim_client *client);

/* Opens it by a context of another machine: as it is, by whichever name. */
int rbx_sim_named_open_for(const struct rbx_sim_client *client, struct rbx_context *ctx,
			   struct rbx_volume **volume);

/* The same, only to read it. */
int rbx_sim_named_open_beside(const struct rbx_sim_client *client, struct rbx_context *ctx,
			      struct rbx_volume **volume);

/* beside.c: nothing is done in worlds without readers. */
void rbx_sim_besides_start(void);
/* No load and no harm any more: waits until they have closed. */
void rbx_sim_besides_rest(void);
/* All is whole: the reader reads all of the volume of this client, and ends. */
void rbx_sim_beside_end(struct rbx_sim_client *client);
/* The oldest moment that a read of it may depend on; or UINT64_MAX. */
uint64_t rbx_sim_beside_oldest(const struct rbx_sim_client *client);

/* rival.c */
/* The client has crashed. Returns whether another one has its volume from now on. */
bool rbx_sim_rival_start(struct rbx_sim_client *client);
/* Whether the client is not to be back yet. */
bool rbx_sim_rival_waits(const struct rbx_sim_client *client);
void rbx_sim_rival_followed(const struct rbx_sim_client *client);
/* The client has opened its volume, and nothing is read or written yet. -EAGAIN: the rival has
 * opened it since. */
int rbx_sim_rival_fence(struct rbx_sim_client *client);
/* The moment of the oldest read that it has outstanding; or UINT64_MAX. */
uint64_t rbx_sim_rival_oldest(const struct rbx_sim_client *client);
/* Forgets those that have ended. */
void rbx_sim_rivals_look(void);
void rbx_sim_rivals_heal(void);
/* Waits for their ends. */
void rbx_sim_rivals_end(void);

/* loop.c */
void rbx_sim_loop_start(struct rbx_sim_client *client);
void rbx_sim_loop_end(struct rbx_sim_client *client);

/* talk.c */
void rbx_sim_talk_start(struct rbx_sim_client *client);
void rbx_sim_talk_join(struct rbx_sim_client *client);
/* The message handler of all servers. */
void rbx_sim_talk_heard(struct rbx_server *server, uint64_t client,
			const void *data, size_t length, void *user);

/* visit.c */
void rbx_sim_visits_start(struct rbx_sim_client *client);
void rbx_sim_visits_join(struct rbx_sim_client *client);

/* discard.c */
void rbx_sim_discards_draw(struct rbx_sim_client *client);
void rbx_sim_discards_start(struct rbx_sim_client *client);
void rbx_sim_discards_join(struct rbx_sim_client *client);
/* Whether a request to a volume on demand, or with a name, may have ended so: no server had memory
 * for the first write of a slab. */
bool rbx_sim_discards_excuse(const struct rbx_sim_client *client,
			     const struct rbx_request *request);

/* load.c */
void rbx_sim_load_start(struct rbx_sim_client *client);
void rbx_sim_load_join(struct rbx_sim_client *client);
void rbx_sim_load_free(struct rbx_sim_client *client);
/* The machine of the client has failed: what it wrote and was not told of may be there or
 * not. */
void rbx_sim_load_abandon(struct rbx_sim_client *client);
/* Whether a request may have ended so because its memory was bad. */
bool rbx_sim_memory_excuses(const struct rbx_request *request);

/* drain.c */
void rbx_sim_server_drain(struct rbx_sim_server *server);
/* Once: its drain has ended, and so has it. */
bool rbx_sim_server_has_drained(struct rbx_sim_server *server);

/* loss.c */
/* Whether a request may have ended so in a world where slabs are lost. */
bool rbx_sim_loss_excuses(const struct rbx_sim_client *client,
			  const struct rbx_request *request);
/* In such a world, when it has healed: everything is written again. offer: gives clients the
 * servers that are there. */
void rbx_sim_loss_repair(void (*offer)(void));

/* outage.c */
/* Now and then most servers are away. */
void rbx_sim_outages_harm(void);
/* After every event: whether servers of the volume are away. */
void rbx_sim_outage_look(struct rbx_sim_client *client);
/* Whether a request may have ended so in a world where too many servers are away at times: one
 * of those of its volume was, or its slab is of no use. */
bool rbx_sim_outage_excuses(const struct rbx_sim_client *client, const struct rbx_sim_slot *slot);
/* In such a world, when it has healed: each volume serves all requests again, without being opened
 * anew. */
void rbx_sim_outage_over(void);

/* given_up.c: nothing is done in worlds that do not give up */
/* All is read, and the volume is open. It is so afterwards, with new servers. */
void rbx_sim_given_up(struct rbx_sim_client *client);
/* Before a server is asked for a volume, by any client. */
void rbx_sim_given_up_asked(void);

/* announced.c: nothing is done in worlds without a store. */
/* On the machine of a server: it announces itself, as it is now, no more. */
void rbx_sim_announce_begin(struct rbx_sim_server *server);
void rbx_sim_announce_now(struct rbx_sim_server *server);
void rbx_sim_announce_end(struct rbx_sim_server *server);
/* Now and then the store is away. */
void rbx_sim_announced_harm(void);
/* When all has healed: everybody knows which servers there are. */
void rbx_sim_announced_over(void);

/* harm.c */
void rbx_sim_harm_init(void);
void rbx_sim_harm_now_and_then(void);
void rbx_sim_harm_heal(void);

/* Whether the machines of all these servers may fail at once, and no slab is lost if its replicas
 * are in different ones. */
bool rbx_sim_harm_may_take(bool (*is_one)(const struct rbx_sim_server *server, uint32_t which),
			   uint32_t which);
/* It fails, and starts again later. */
void rbx_sim_harm_crash(struct rbx_sim_server *server);
/* It is cut off for so long. */
void rbx_sim_harm_cut(const struct rbx_sim_server *server, uint64_t for_ns);

/* client_cut.c */
void rbx_sim_client_cuts_init(void);
/* It reaches no server for so long. */
void rbx_sim_client_cut(const struct rbx_sim_client *client, uint64_t for_ns);
/* Whether it is to be away now, in the way of the site, and for how long it may be without losing
 * its lease, plus time to be back: it is back within half of the lease. Its last message may be an
 * eighth of the lease old, and a try to resume takes time: the first one after that counts. */
bool rbx_sim_client_is_away(const struct rbx_sim_client *client, enum rbx_sim_site site,
			    uint64_t least_ns, uint64_t *for_ns);
void rbx_sim_client_cuts_heal(void);

/* racks.c */
uint32_t rbx_sim_rack_of_node(uint32_t node);
/* Whether each volume knows servers in all racks. */
bool rbx_sim_racks_are_known(void);
/* Now and then a rack is lost. */
void rbx_sim_racks_harm(void);
/* No slab has two replicas in one rack: there was always a choice. */
void rbx_sim_racks_check(const struct rbx_sim_client *client, const struct rbx_slab *slab);
/* Options of the clients: as many racks as replicas stay when one is lost. */
void rbx_sim_racks_adjust(void);

/* check.c */
void rbx_sim_check(void);
/* No replica of a client has this loan of a server, which is about to end. */
void rbx_sim_check_unused(uint32_t server_node,
			  const struct rbx_lender_loan *loan);

/* first_copies.c */
/* After every event. */
void rbx_sim_first_copies_look(const struct rbx_sim_client *client);
/* Whether a slab of it has only been at the server of this node. */
bool rbx_sim_first_copies_at(const struct rbx_sim_client *client, uint32_t node);

/* replicas.c: those of each slab that are read are equal. Each comparison is counted. */
/* Nothing is under way: damages some pages of a named volume with checksums, each at the replica
 * that is read first. */
void rbx_sim_replicas_damage(struct rbx_sim_client *client);
void rbx_sim_replicas_compare(const struct rbx_sim_client *client, enum rbx_sim_tally tally);
/* Its named volume was opened, and nothing is read or written yet. */
void rbx_sim_replicas_opened(struct rbx_sim_client *client);

/* finish.c */
void rbx_sim_finish(void);

#endif
