/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_servers.h - a part of named_volume.h: the servers of a named volume come and go.
 *
 *	rbx_volume_members_add()	it gets more, if no program has it open
 *	rbx_volume_move_off()		its slabs leave one, while it is open ...
 *	rbx_volume_members_remove()	... which can be taken away then
 *	rbx_volume_give_up()		some are gone for good: it goes on without them
 *	rbx_volume_clear_lost()		what was lost with those becomes zeros
 *
 * rbx_volume_add_server() (volume.h) is for a volume that is open.
 */
#ifndef RDMABOX_VOLUME_SERVERS_H
#define RDMABOX_VOLUME_SERVERS_H

#include "rdmabox/context.h"
#include "rdmabox/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Servers that a volume has at most at a time. */
#define RBX_VOLUME_SERVERS_MAX 64

/**
 * rbx_volume_members_add() - gives a named volume more servers, which no program has open.
 * @servers: those that it has, as for rbx_volume_open(); more than half of them must be there
 * @new_servers: "host:port,host:port": those that it gets; all of them must be there
 *
 * It gets all of them or none. They have nothing of the volume yet: slabs are borrowed there as the
 * volume is written, and replicas that are missing are made there when a program has it open. If
 * the call was interrupted, it can be made again: servers that the volume got by it are no error
 * then. A server that was started anew without its memory is another one, also at the same address.
 *
 * Returns 0, or:
 *	-ENOENT: none of the servers has it
 *	-EEXIST: the volume has one of the new servers already; or one of these has another
 *		volume of that name; or as rbx_volume_remove()
 *	-EINVAL: a server is named twice, or lends slabs of another length
 *	-ENOSPC: the volume would have more than 64 servers; or one of the new ones has no room for
 *		a slab, or keeps as many volumes as it can
 *	-EDQUOT: at a new one this credential has as much memory or as many volumes as it may have
 *	-EBUSY: a program has it open, rbx_last_error() names it
 *	-EHOSTUNREACH: too few of its servers are there
 *	-EACCES: it belongs to another credential
 *	-ESTALE: a program opened it meanwhile
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_members_add(struct rbx_context *ctx, const char *servers, const char *name,
			   const char *new_servers);

/* A server of a named volume. */
struct rbx_volume_member {
	size_t size_bytes; /* of what was filled in; the rest is zero */
	uint64_t incarnation; /* as rbx_server_incarnation() tells it */
	uint32_t is_out; /* 1: it was lost, and is not needed to open the volume */
	uint32_t is_there; /* 1: it was asked, and has the volume */
	char address[256]; /* "host:port" by which it was asked; "": it was not */
};

/**
 * rbx_volume_members_list_sized() - tells which servers a named volume has.
 * @servers: some of them; those that do not answer are left out, `server_away` of the options of
 *	@ctx is told of them
 * @members: receives at most @max of them
 * @member_bytes: of one struct, as the program knows it
 *
 * Returns how many there are, perhaps more than @max, or:
 *	-ENOENT: none of the servers has it
 *	-EACCES: it belongs to another credential
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_members_list_sized(struct rbx_context *ctx, const char *servers, const char *name,
				  struct rbx_volume_member *members, uint32_t max,
				  size_t member_bytes);

/**
 * rbx_volume_members_list() - tells which servers a named volume has.
 * @servers: some of them; those that cannot be reached are left out
 * @members: receives at most @max of them
 *
 * It fills in this version of the struct, as rbx_volume_members_list_sized().
 *
 * Returns how many there are, perhaps more than @max, or:
 *	-E...: as rbx_volume_members_list_sized()
 * Context: any thread; blocks until all servers have answered.
 */
static inline int rbx_volume_members_list(struct rbx_context *ctx, const char *servers,
					  const char *name, struct rbx_volume_member *members,
					  uint32_t max)
{
	return rbx_volume_members_list_sized(ctx, servers, name, members, max, sizeof(*members));
}

/**
 * rbx_volume_members_remove() - takes a server from a named volume that no program has open.
 * @servers: those that it has, as for rbx_volume_members_add()
 * @server: its incarnation, 16 digits; or the "host:port" of one that is there, as in @servers
 *
 * It must be out, or be there and have no slab. If it is out nothing of what it has counts, whether
 * it is dead or there; if it is there, it gives up what it has. Of one that is in use the slabs are
 * moved before: rbx_volume_move_off().
 *
 * Returns 0, or:
 *	-ENODEV: it is none of the volume's servers
 *	-EADDRINUSE: it is not out, and has slabs
 *	-EHOSTUNREACH: it is not out, and is not there; or too few of the others are
 *	-ENOSPC: it is not out, and without it there are fewer servers than replicas
 *	-ENOENT: none of the servers has the volume
 *	-EBUSY: a program has it open, rbx_last_error() names it
 *	-EINVAL, -EACCES, -EEXIST, -ESTALE: as rbx_volume_members_add()
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_members_remove(struct rbx_context *ctx, const char *servers, const char *name,
			      const char *server);

/**
 * rbx_volume_move_off() - moves what a named volume has at a server to its other servers.
 * @volume: it is open, and has replicas
 * @server: its incarnation, 16 digits; or its "host:port"
 *
 * From the first call on nothing is borrowed at that server. Call it again and again, a few times
 * in a second, until it returns 0: one slab is copied at a time, as for a server that drains.
 * Requests go on meanwhile, and no slab has fewer copies than before. The server stays one of the
 * volume's: close the volume and call rbx_volume_members_remove(). If the volume is closed before
 * all is moved, the rest stays where it is; the next open borrows there again.
 *
 * Returns how many slabs have something there yet, or:
 *	-ENODEV: it is none of the volume's servers that are there
 *	-EIO: the server was out of reach while it had the last copy of something; the next open can
 *		move what it has
 *	-ENOSPC: too few servers or failure domains would be left for its replicas, or the others do
 *		not have room for all; what was moved stays moved
 *	-EOPNOTSUPP: the volume has no name, or has one replica of each slab
 *	-EINVAL: no server was given
 *	-ESTALE: another program has opened it, or too few of its servers answer
 *	-EDEADLK: in a callback
 * Context: any thread; blocks while a server is being added; looks at all slabs.
 */
int rbx_volume_move_off(struct rbx_volume *volume, const char *server);

/* Servers of a named volume that are not there, and what those that are there have of it. */
struct rbx_volume_loss {
	size_t size_bytes; /* of what was filled in; the rest is zero */
	uint32_t servers; /* that it has */
	uint32_t servers_gone; /* of them, that are not there */
	uint64_t gone[RBX_VOLUME_SERVERS_MAX]; /* the same: their incarnations */
	uint32_t servers_unnamed; /* of these: so many may be there, as no server that was given and
				   * is away can be one of them, and they are not out */
	uint32_t is_open; /* 1: a program has it open */
	uint32_t may_be_old; /* 1: so few are there that what they have may be old */
	uint32_t may_lose; /* 1: data may be lost if the others do not come back */
	uint32_t is_lost; /* 1: it is: rbx_volume_give_up() was called before */
	uint32_t slabs; /* that it has */
	uint32_t slabs_found; /* of them, that a server has which is there; all others read as
			       * zeros, or fail if is_lost */
};

/* Bytes of a volume. */
struct rbx_volume_range {
	uint64_t offset; /* of the first of them */
	uint64_t length_bytes; /* how many */
};

/**
 * rbx_volume_loss_look_sized() - tells what is lost if servers of a volume do not come back.
 * @servers: those that it has; those that cannot be reached are left out
 * @loss: receives what is known
 * @ranges: receives at most @max ranges of slabs that no server has which is there: they were
 *	never written, or are lost
 * @loss_bytes: of @loss, as the program knows it
 *
 * It changes nothing, and a program that has the volume open goes on. If that one borrows or gives
 * back memory meanwhile, this may or may not be seen.
 *
 * Returns how many ranges there are, perhaps more than @max, or:
 *	-ENOENT: none of the servers has it
 *	-EACCES: it belongs to another credential
 *	-EINVAL: something is not given
 *	-ENOMEM: memory ran out
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_loss_look_sized(struct rbx_context *ctx, const char *servers, const char *name,
			       struct rbx_volume_loss *loss, struct rbx_volume_range *ranges,
			       uint32_t max, size_t loss_bytes);

/**
 * rbx_volume_loss_look() - tells what is lost if servers of a volume do not come back.
 * @servers: those that it has; those that cannot be reached are left out
 * @loss: receives what is known
 * @ranges: receives at most @max ranges of slabs that no server has which is there
 *
 * It fills in this version of the struct, as rbx_volume_loss_look_sized().
 *
 * Returns how many ranges there are, perhaps more than @max, or:
 *	-E...: as rbx_volume_loss_look_sized()
 * Context: any thread; blocks until all servers have answered.
 */
static inline int rbx_volume_loss_look(struct rbx_context *ctx, const char *servers,
				       const char *name, struct rbx_volume_loss *loss,
				       struct rbx_volume_range *ranges, uint32_t max)
{
	return rbx_volume_loss_look_sized(ctx, servers, name, loss, ranges, max, sizeof(*loss));
}

/**
 * rbx_volume_give_up() - goes on with a named volume without servers that will not come back.
 * @servers: those that it has; those that cannot be reached are left out. All must be named, also
 *	those that are gone, unless it is a pool that may change (file:PATH): which of them are gone
 *	for good is not told by forgetting one
 * @gone: the incarnations of the servers that are given up, as rbx_volume_loss_look() told them;
 *	all that are not there
 * @gone_count: how many
 * @force: 1: also if a program has it open, which is shut out; and also if so few of its servers
 *	are there that what they have may be old
 *
 * Call it only if these servers are gone for good, with what was in their memory. If one of them
 * comes back after all, it is a new server, and gives up what it has when the volume gets it.
 *
 * If data may be lost (`may_lose` of rbx_volume_loss_look()), reads and writes of slabs that no
 * server has end with -EIO from then on, until rbx_volume_clear_lost(). What can be read was
 * acknowledged last. It happens or it does not; if the call was interrupted, make it again, with
 * the same @gone: if all that are left are there, servers that are given up already may be named.
 *
 * Returns how many servers were given up, 0 if all its servers are there, or:
 *	-ENODEV: one of @gone is none of its servers, and some server is gone
 *	-EISCONN: one of @gone is there
 *	-ENOTCONN: another one is not there, which may come back
 *	-EHOSTUNREACH: @servers leaves one out that may be there; or what is there may be old,
 *		without @force; or none of the servers that are there is in
 *	-ENOENT: none of the servers has it
 *	-EBUSY: a program has it open, without @force; rbx_last_error() names it
 *	-EACCES: it belongs to another credential
 *	-EPROTO: servers of this volume were given up too often, some 240 times
 *	-ESTALE: a program opened or changed it meanwhile
 *	-EINVAL: something is not given
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered; and for two leases if the last
 * program has not closed it.
 */
int rbx_volume_give_up(struct rbx_context *ctx, const char *servers, const char *name,
		       const uint64_t *gone, uint32_t gone_count, int force);

/**
 * rbx_volume_clear_lost() - makes slabs of a named volume zeros that are lost.
 * @servers: those that it has; more than half of them must be there
 *
 * After rbx_volume_give_up() slabs that no server has are lost, or were never written. They read as
 * zeros from now on, and can be written.
 *
 * Returns 0, also if nothing is lost, or:
 *	-ENOENT: none of the servers has it
 *	-EBUSY: a program has it open, rbx_last_error() names it
 *	-EHOSTUNREACH: too few of its servers are there
 *	-EACCES: it belongs to another credential
 *	-ESTALE: a program opened it meanwhile
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_clear_lost(struct rbx_context *ctx, const char *servers, const char *name);

#ifdef __cplusplus
}
#endif

#endif
