/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - what the files of a volume share. It is the kernel's host of a volume's
 * flow, upkeep and control (core/flow.h, core/upkeep.h, client/volume.h).
 *
 *	volume.c         opens and closes, tells the status
 *	connect.c        connects to the servers that the options name, and one more; leaves them
 *	joins.c          tries servers again that were lost
 *	change.c         changes options while it is open
 *	submit.c         an I/O: mapped, split, joined
 *	dma.c            maps memory for the device, if the volume has only one
 *	scratch.c        memory that is no I/O's
 *	tails.c          where a device finds the checksums that go to servers
 *	copies.c         memory for the copies of a rebuild
 *	news.c           logs what the upkeep finds
 *	state.c          how the volume and its servers are, in a word
 *
 * The locks of the core are spinlocks here, taken in process context only. Only steps of
 * the core are called under them.
 */
#ifndef RBX_KERNEL_VOLUME_H
#define RBX_KERNEL_VOLUME_H

#include <linux/workqueue.h>

#include "client/join_tries.h"
#include "client/volume.h"
#include "kernel/api.h"
#include "kernel/lib/peer/peer.h"

/* The thread of joins.c. */
struct rbx_volume_joins {
	/* guarded by add_lock; and by the monitor, how many there are and their addresses */
	struct rbx_join_tries tries;
	struct rbx_thread thread;
	bool is_running;
	struct rbx_monitor monitor; /* guards stop; the thread waits in it */
	bool stop;
};

/* The look of state.c. */
struct rbx_volume_state_watch {
	void (*changed)(void *user, enum rbx_volume_state state); /* NULL: nobody is told */
	void *user;
	bool is_on; /* atomic: from the end of the open to the begin of the close */
	struct delayed_work work;
	enum rbx_volume_state told; /* last; the work's */
};

/* Where a device finds the checksums that go to servers (tails.c). */
struct rbx_volume_tails {
	struct rbx_volume_tails_chunk {
		void *memory;
		u64 addr; /* the device's, while they are mapped */
	} *chunks; /* NULL: the servers keep none */
	u32 chunks_count;
	u32 mapped_count; /* of the chunks; changed by map() and unmap() alone */
	bool are_mapped; /* all of them; atomic */
};

struct rbx_volume {
	/* The client on the first device; others follow it (context.h). */
	struct rbx_client client;
	struct rbx_context *ctx; /* of the first device */
	void *secret; /* a copy of it */
	bool may_be_far; /* its servers: there is a secret, or none is needed; with add_lock */
	struct mutex add_lock; /* held while a server is added (client/joining.h) */
	struct rbx_volume_joins joins;
	struct rbx_volume_state_watch state_watch;
	struct rbx_flow_counters counters;
	struct rbx_volume_control control;
	struct rbx_mappings mappings; /* of its I/Os and tails, for the first device */
	bool maps_late; /* atomic: it has servers behind several devices, from now on */
	bool all_is_late; /* and no I/O is mapped any more; with add_lock */
	void *copies_memory[RBX_COPIES_MAX]; /* a cell for each copy of a rebuild */
	struct rbx_volume_tails tails;
};

static inline struct rbx_volume *
rbx_volume_of_control(struct rbx_volume_control *control)
{
	return container_of(control, struct rbx_volume, control);
}

static inline struct rbx_volume *rbx_volume_of_flow(struct rbx_flow *flow)
{
	return rbx_volume_of_control(rbx_volume_control_of_flow(flow));
}

/* connect.c */

/* Opens the context and a peer for each server. Blocks. -EINTR: a signal came. The
 * servers have to be closed even after a failure. */
int rbx_volume_servers_open(struct rbx_volume *volume,
			    const struct rbx_volume_options *options);
/* Ends the sessions with all servers, and so all loans. Blocks. */
void rbx_volume_servers_close(struct rbx_volume *volume);

/* Connects to one more server, "10.0.0.1:7471", which joins it. returns: only one that was a
 * member of a named volume. add_lock is held. As rbx_joining_add(). Blocks. */
int rbx_volume_server_add(struct rbx_volume *volume, const char *server, bool returns);

/* joins.c */

int rbx_volume_joins_make(struct rbx_volume *volume);
void rbx_volume_joins_free(struct rbx_volume *volume);
/* A server that was lost is tried again at this address. add_lock is held. */
void rbx_volume_joins_note(struct rbx_volume *volume, const struct sockaddr_storage *address);
/* The one of this number, from 0 on. 0, -ENOENT. Any thread. */
int rbx_volume_joins_address(struct rbx_volume *volume, u32 index,
			     char address[RBX_SERVER_ADDRESS_BYTES]);
/* While the volume is open. 0 or -errno. Stopping blocks, for the peer timeout at most. */
int rbx_volume_joins_start(struct rbx_volume *volume);
void rbx_volume_joins_stop(struct rbx_volume *volume);

/* state.c */

void rbx_volume_state_begin(struct rbx_volume *volume, const struct rbx_volume_options *options);
/* While the volume is open. Stopping blocks, for the callback at most. */
void rbx_volume_state_start(struct rbx_volume *volume);
void rbx_volume_state_stop(struct rbx_volume *volume);
/* It may have changed. Any thread; does not block. */
void rbx_volume_state_news(struct rbx_volume *volume);

/* submit.c */

extern const struct rbx_flow_ops rbx_volume_flow_ops;

/* dma.c */

/* device: NULL: it is mapped late. In an RCU section. 0, -ENOMEM. */
int rbx_volume_io_map(const struct rbx_volume *volume, struct rbx_io *io,
		      struct ib_device *device);
/* Unmaps it if it is mapped. */
void rbx_volume_io_unmap(const struct rbx_volume *volume, struct rbx_io *io,
			 struct ib_device *device);
/* Between these two the memory follows the first device. The tails are open; at the end nothing
 * may be in flight. 0, -ENOMEM; call close even then. */
int rbx_volume_mappings_open(struct rbx_volume *volume);
void rbx_volume_mappings_close(struct rbx_volume *volume);
/* There will be a server behind another device. When it returns, all I/Os are late. add_lock is
 * held, unless the volume is being opened. 0; -EAGAIN: some take too long; -EINTR. Blocks. */
int rbx_volume_map_late(struct rbx_volume *volume);

/* tails.c */

/* Of a named volume with checksums; else they do nothing. The copies of a rebuild are lent; at the
 * end nothing may be in flight. 0, -ENOMEM; reported by nobody. */
int rbx_volume_tails_open(struct rbx_volume *volume);
void rbx_volume_tails_close(struct rbx_volume *volume);
/* For dma.c: maps and unmaps them for the first device. 0, -ENOMEM: some are mapped. */
int rbx_volume_tails_map(struct rbx_volume *volume, struct ib_device *device);
void rbx_volume_tails_unmap(struct rbx_volume *volume, struct ib_device *device);
/* Of an idle piece that is being submitted: where the device finds them, if the I/O is mapped for
 * it. In an RCU section, which ends when its user is set. */
void rbx_volume_tails_aim(const struct rbx_volume *volume, struct rbx_piece *piece,
			  bool is_mapped);
/* They are late from now on. Of an idle piece, or as rbx_piece_relocate(). */
void rbx_volume_tails_leave(const struct rbx_volume *volume, struct rbx_piece *piece);
/* show() of the flow's table. */
void rbx_volume_tails_show(struct rbx_flow *flow, struct rbx_piece *piece);

/* copies.c */

int rbx_volume_copies_make(struct rbx_volume *volume);
/* Waits until none is in flight, and frees them. */
void rbx_volume_copies_end(struct rbx_volume *volume);
void rbx_volume_copies_free(struct rbx_volume *volume);

#endif
