/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * opening.h - opens a named volume (docs/named-volumes.md, "Opening, and who may write").
 *
 *	rbx_opening_begin()     which of the servers have it; the epoch
 *	                        The host connects to those. Each is asked for the volume, as soon as
 *	                        it is connected (servers.c); and makes the map
 *	rbx_opening_take()      the record is accepted, the slabs are found
 *	                        The host borrows the rest, and starts the upkeep
 *	rbx_opening_wait_even() the replicas are equal, if the last client has crashed
 *	...                     requests
 *	rbx_opening_close()     at the end: the record says that they are equal
 *
 * Each step is taken at all servers at once, and is over at all of them before the next one begins.
 * So the rules for their order say all that has to be known.
 */
#ifndef RBX_CLIENT_OPENING_H
#define RBX_CLIENT_OPENING_H

#include "client/crowd.h"
#include "client/volume.h"

/* Asks the servers of the crowd for the volume of this name. control->named is made, and if it has
 * replicas, control->keeper. *members: receives those servers that have it, as
 * "host:port,host:port", in memory of rbx_memory_make(). 0; -ENOENT: there is none; -EBUSY: another
 * client has it open, unless take_over: named->writer says who; -EACCES, -EHOSTUNREACH, -EPROTO,
 * -ENOMEM, -EINTR; reported. Blocks. */
int rbx_opening_begin(struct rbx_volume_control *control, struct rbx_crowd *crowd,
		      const char *name, bool take_over, char **members);
/* The servers are connected, and the map is made: their slabs are taken into it. 0; -ESTALE:
 * another client has opened it meanwhile; -EHOSTUNREACH: too few servers accept this one; -errno;
 * -EINTR; reported. Blocks; for two leases if servers are missing that may serve the former
 * client. */
int rbx_opening_take(struct rbx_volume_control *control, struct rbx_sessions *sessions);
/* Rounds of upkeep are made: waits until all replicas are equal. 0; -EINTR; -errno; reported.
 * Blocks. */
int rbx_opening_wait_even(struct rbx_volume_control *control);

/* Nothing of the host's is under way, and the upkeep thread has ended. Blocks. */
void rbx_opening_close(struct rbx_volume_control *control);
/* The memory of what begin() has made. */
void rbx_opening_free(struct rbx_volume_control *control);

/* ---- What the host does for it -------------------------------------------------------------- */

/* Who this program or machine is, for those that find a volume open. */
void rbx_holder_describe(char holder[RBX_WIRE_HOLDER_BYTES]);
/* This takes long, and so many slabs are left of it; 0: it is not about slabs. */
void rbx_volume_opening_tell(struct rbx_volume_control *control, const char *what,
			     uint32_t slabs_count);
/* Gives completions time. 0; -EINTR: it must not wait any longer. */
int rbx_volume_turn_wait(struct rbx_volume_control *control);

#endif
