/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - the parts of a volume that wait or report: its servers and its upkeep thread.
 *
 *	servers.c        connects to the servers and leaves them; their messages; requests
 *	                 of the upkeep to them
 *	side_by_side.c   several servers at a time
 *	upkeep_thread.c  the thread that makes the rounds of the upkeep
 *
 * The volume of each host contains one of these (core/flow.h and core/upkeep.h decide in it),
 * and is found from it. The host decides how a server is named and connected, provides the
 * memory for the copies of a rebuild, and receives the news.
 */
#ifndef RBX_CLIENT_VOLUME_H
#define RBX_CLIENT_VOLUME_H

#include "client/peer.h"
#include "client/returned.h"
#include "client/side_by_side.h"
#include "core/upkeep_state.h" /* for its size alone */

struct rbx_keeper; /* client/keeper.h */
struct rbx_named; /* client/named.h */
struct rbx_volume_control;
struct rbx_server_name; /* the host's: what is known of a server that is not connected yet */

/* Whether the server that is being connected comes to a named volume that is open. */
enum rbx_server_coming {
	RBX_COMES_NOT, /* it is one of those with which the volume is opened, or it has no name */
	RBX_COMES, /* to become a member */
	RBX_COMES_BACK, /* the same, but only if it was one, and is OUT */
};

/* A place of the table of servers. */
struct rbx_volume_server {
	struct rbx_volume_control *control;
	/* Set before any replica refers to it; NULL: there is none. Changed under the
	 * upkeep's servers_lock. */
	struct rbx_peer *peer;
	struct rbx_ask ask; /* the upkeep's */
	bool is_given_up; /* atomic: its peer is down, for good */
	bool is_shunned; /* atomic: the record is about to say that it is out (keeper_state.h) */
	bool has_failed; /* atomic: it was judged so, and has not come again (core/held.h) */
	/* It is OUT because it drains. Of the upkeep thread; cleared before the place is in use. */
	bool has_drained;
	enum rbx_server_coming coming; /* while it is connected */
	/* While it comes: of a server that has FAILED, and may be the one that comes; 0: none */
	uint64_t failed_incarnation;
	/* While it is connected: what the pool says of its place; NULL: nothing. */
	const char *labels;
	/* While it returns: what it has. Of the thread that connects it, but while that waits. */
	struct rbx_returned returned;
	/* While the volume is opened: */
	struct rbx_server_name *name;
	int open_err;
};

struct rbx_volume_control {
	struct rbx_flow flow;
	struct rbx_upkeep upkeep;
	uint32_t server_count; /* places that are or were in use */
	struct rbx_volume_server *servers; /* in memory of the host */
	struct rbx_side_by_side side_by_side; /* while all are opened or closed */
	struct rbx_named *named; /* NULL: the volume has no name */
	struct rbx_keeper *keeper; /* NULL: or has no replicas */
	const char *spread; /* label of the failure domains (core/server_labels.h) */
	/* While all are opened: the others are connected even if one cannot be. */
	bool may_lack_servers;

	struct rbx_thread upkeep_thread;
	/* Guards what follows. The upkeep thread waits in it. */
	struct rbx_monitor monitor;
	bool upkeep_wanted;
	bool upkeep_stop;
	/* The same: what another thread has it call, and waits for; NULL: nothing. */
	void (*upkeep_call)(struct rbx_volume_control *control, void *user);
	void *upkeep_call_user;
};

/* Zeroed memory. The servers are added later. timeout_ns: the peer timeout. */
void rbx_volume_control_init(struct rbx_volume_control *control,
			     const struct rbx_flow_ops *ops,
			     struct rbx_flow_counters *counters,
			     uint64_t timeout_ns);
void rbx_volume_control_destroy(struct rbx_volume_control *control);

static inline struct rbx_volume_control *
rbx_volume_control_of_flow(struct rbx_flow *flow)
{
	return RBX_CONTAINER_OF(flow, struct rbx_volume_control, flow);
}

static inline struct rbx_volume_control *
rbx_volume_control_of_upkeep(struct rbx_upkeep *upkeep)
{
	return RBX_CONTAINER_OF(upkeep, struct rbx_volume_control, upkeep);
}

/* servers.c: submit() of the flow's table. */
void rbx_volume_send(struct rbx_flow *flow, uint32_t server,
		     struct rbx_fragment *first, struct rbx_fragment *last);

/* ---- servers.c. All of it blocks. ------------------------------------------------*/

/* Connects to the server of a place, by its name. */
int rbx_volume_server_open(struct rbx_volume_control *control, uint32_t index);
/* The peer timeout is another one from now on, for the upkeep and for all servers that it has. The
 * host sets that of servers to come, and holds the lock of joining.h. Does not block. */
void rbx_volume_servers_set_timeout(struct rbx_volume_control *control, uint32_t peer_timeout_ms);
/* Says BYE to it, if there is one. */
void rbx_volume_server_close(struct rbx_volume_control *control, uint32_t index);
/* Begins to connect to all places, by their names. Afterwards open_err of each place has its
 * result. If one fails, and may_lack_servers is not set, those that were not begun are left
 * out. The host waits, and ends it (side_by_side.h). */
void rbx_volume_servers_begin(struct rbx_volume_control *control);
/* Says BYE to all: their loans end. */
void rbx_volume_servers_leave(struct rbx_volume_control *control);

/* ---- upkeep_thread.c --------------------------------------------------------------*/

/* Returns 0 or -errno, which was reported by rbx_error(). */
int rbx_volume_upkeep_start(struct rbx_volume_control *control);
/* A rebuild may still be under way afterwards. */
void rbx_volume_upkeep_stop(struct rbx_volume_control *control);
/* Upkeep has something to do. Any thread; does not block. */
void rbx_volume_upkeep_wake(struct rbx_volume_control *control);
/* Has that thread call act() before its next round, and waits for it. One thread at a time, while
 * the volume is open. Blocks. */
void rbx_volume_upkeep_call(struct rbx_volume_control *control,
			    void (*act)(struct rbx_volume_control *control, void *user),
			    void *user);

/* ---- What the host does for it ---------------------------------------------------*/

/* Opens a peer, by the name of this place in the table. Blocks. */
int rbx_volume_connect(struct rbx_volume_control *control, uint32_t index,
		       const struct rbx_peer_events *events,
		       struct rbx_peer **peer);
/* Reports the news of the upkeep: refused() and tell() of its table. By its thread. */
void rbx_volume_refused(struct rbx_upkeep *upkeep);
void rbx_volume_tell(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err);
/* A named volume is read and written no more, for this reason; once more when a better one is
 * known. server: that has said so, or was lost; "": none. Or it goes on. By the same thread. */
void rbx_volume_stopped(struct rbx_volume_control *control, const char *server, const char *why);
void rbx_volume_goes_on(struct rbx_volume_control *control);

#endif
