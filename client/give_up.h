/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * give_up.h - an operator says that servers of a named volume will not come back: it goes on with
 * those that are there (docs/named-volumes.md, "Servers that are gone for good").
 *
 * An open refuses as long as servers are missing that may have data which no other one has, or that
 * may know of a later record. Nobody but an operator can know that they will never come. So:
 *
 *	rbx_give_up_look()    what would be given up, and what those that are left have. It asks
 *	                      nobody for the volume, so it changes nothing, and shuts nobody out
 *	rbx_give_up_do()      all of these grant the volume in the next epoch, which shuts the last
 *	                      client out, and its authority ends; then they grant it in an epoch
 *	                      far above that, and all of them accept a record that names no other
 *	                      server
 *
 * Only those are given up that the operator has named, by their incarnations. If another one is
 * missing as well it may be away for a moment, so nothing is done; nor if the list of servers does
 * not tell where a missing one is: who forgot to name it does not give it up.
 *
 * If that record has the flag LOST, a slab of which no server has a label was never written, or it
 * is lost. Nobody can tell which, so reads and writes of it fail until rbx_give_up_clear().
 *
 * A client that is refused, or dies before the first server has accepted, leaves the volume as it
 * was; later, the next one who hears of the record finishes the change. What those given up have
 * counts for nothing as soon as any server is there that has accepted: its epoch is later than all
 * that they come to.
 */
#ifndef RBX_CLIENT_GIVE_UP_H
#define RBX_CLIENT_GIVE_UP_H

#include "client/crowd.h"

/* Those given up may be there after all, be opened without the others, and count their epochs on
 * from the last one that all had in common. Then this many opens are needed before their record
 * could be taken for the newer one. A server grants no epoch above RBX_MEMBERSHIP_STEP_MAX of a
 * volume that it makes anew, so this can be done some 240 times. */
#define RBX_GIVE_UP_EPOCHS (1u << 24)

/* What is known of the servers and slabs of a volume. */
struct rbx_loss {
	struct rbx_member_set gone; /* members that are not there */
	uint32_t gone_in_count; /* of them: those that are not OUT */
	uint32_t unnamed_count; /* of these: nothing that was named can be one of them */
	bool is_open; /* a client has it open */
	bool is_certain; /* those that are left know of each record that was chosen */
	bool may_lose; /* a slab that was written may be at none of those that are left */
	uint32_t slabs_count;
	uint32_t found_count; /* of them: those that are left have all of it */
	bool *found; /* the same, of each slab; rbx_loss_free() */
};

/* Nothing is changed, nobody is shut out, and a client that has it open goes on. 0; -ENOENT,
 * -EACCES, -EEXIST: as rbx_crowd_look(); -EPROTO; -ENOMEM; reported. loss: to be freed in any case.
 * The sessions are good for nothing else afterwards. Blocks. */
int rbx_give_up_look(struct rbx_named *named, struct rbx_crowd *crowd, struct rbx_loss *loss);
void rbx_loss_free(struct rbx_loss *loss);

/* These members are given up, which are all that are not there. If all are there, what was begun
 * before is finished. force: also if a client has it open, which is shut out; and if so few are
 * left that what they have may be old. How many were given up; -ENODEV: one of them is no member;
 * -EISCONN: one of them is there; -ENOTCONN: another one is missing; -EHOSTUNREACH: the list of
 * servers leaves one out, or it would need force, or nobody is left that is IN; -EBUSY: it is open;
 * -ESTALE: somebody opened or changed it meanwhile; or as the look; reported. Blocks; for two
 * leases if the last client has not closed the volume, which may still have sessions with those
 * given up. */
int rbx_give_up_do(struct rbx_named *named, struct rbx_crowd *crowd, struct rbx_sessions *sessions,
		   const struct rbx_member_set *gone, bool force);

/* What is lost is zeros from now on. 0, also if nothing is lost; -EBUSY: a client has it open;
 * -EHOSTUNREACH: too few servers are there; or as the look; reported. Blocks. */
int rbx_give_up_clear(struct rbx_named *named, struct rbx_crowd *crowd);

#endif
