/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_volume.h - volumes with names: memory that outlives the program that made it.
 *
 *	rbx_volume_create(ctx, "host1:7471,host2:7471", "scratch", 64ull << 30, NULL);
 *	options.name = "scratch";
 *	rbx_volume_open(ctx, &volume, "host1:7471,host2:7471", 0, &options);
 *
 * A named volume stays on its servers when the program closes it, crashes, or moves to another
 * machine. One program at a time has it open. If another one takes it over, the former can neither
 * read nor write any more before the new one begins, even if it was only asleep: its requests
 * end with an error.
 *
 * A write that has completed is read back by whoever opens the volume next. With one replica, what
 * is on a server is lost with that server, reads of it end with -EIO, and nobody can open the
 * volume any more. With more, a program that has it open goes on when a server dies, and makes the
 * replicas anew at others. The next one opens the volume without that server, also if it died
 * while no program had the volume open. More than half of the servers must be there, and fewer
 * missing than rbx_volume_info.copies. If it was opened by a pool that may change, servers that
 * come into the pool become servers of the volume.
 */
#ifndef RDMABOX_NAMED_VOLUME_H
#define RDMABOX_NAMED_VOLUME_H

#include "rdmabox/rdmabox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With the zero at its end. */
#define RBX_VOLUME_NAME_MAX 64
#define RBX_VOLUME_WRITER_MAX 64
#define RBX_VOLUME_OWNER_MAX 32

struct rbx_volume_create_options {
	size_t size_bytes; /* of this struct; rbx_volume_create_options_defaults() sets it */
	/* Seconds that it stays on its servers when no program has it open. UINT64_MAX: for
	 * ever. Default: UINT64_MAX. Each server counts by itself, since it last heard of the
	 * program: one that cannot be reached for so long drops its part of a volume that is
	 * open, and with it all of the volume is lost at the next open. */
	uint64_t keep_s;
	/* Servers that have each slab, 1 to 3. Default: 1. */
	uint32_t replicas;
	/* 1: the memory of all slabs is borrowed while the volume is made, and kept until it is
	 * removed: no write ends with -ENOSPC. It fails, and leaves nothing, if the servers have
	 * not so much free. rbx_volume_grow() does the same with what is new. Default: 0. */
	uint32_t reserve;
	/* With `reserve`: called when one more slab was borrowed, from threads of the library, one
	 * at a time. It must not block. Default: NULL. */
	void (*progress)(uint64_t done_bytes, uint64_t all_bytes, void *user);
	void *user; /* passed to `progress`. Default: NULL. */
	/* 1: a CRC32C for each 4 KiB page stays with the volume at its servers, and with the
	 * program that has it open. A page that is damaged at a server is read from another one,
	 * and written there anew; if it is damaged at all of them, the read ends with -EIO.
	 * Requests must then be multiples of 4 KiB, else -EINVAL. Needs 2 replicas at least. It
	 * costs 1 KiB at each server that has a slab, and in the program, for each MiB. Default:
	 * 0. */
	uint32_t checksums;
};

/**
 * rbx_volume_create_options_defaults_sized() - fills in the defaults of a struct of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * Context: any thread; never blocks.
 */
void rbx_volume_create_options_defaults_sized(struct rbx_volume_create_options *options,
					      size_t size_bytes);

/**
 * rbx_volume_create_options_defaults() - fills in the defaults of this version of the struct.
 *
 * Context: any thread; never blocks.
 */
static inline void
rbx_volume_create_options_defaults(struct rbx_volume_create_options *options)
{
	rbx_volume_create_options_defaults_sized(options, sizeof(*options));
}

/**
 * rbx_volume_create() - makes a named volume, which nobody has open.
 * @servers: "host:port,host:port": those that will have it; at most 64
 * @name: 1 to 63 of A-Z a-z 0-9 . _ -, and it begins with a letter or a digit
 * @size: bytes, a multiple of 4 KiB
 * @options: borrowed during the call; NULL takes the defaults
 *
 * It reads as zeros. A slab takes memory of a server when it is first written, unless it is
 * reserved. If the process dies meanwhile, the volume was made or it was not; what some servers may
 * have of it then goes as soon as anybody lists, makes or opens volumes there.
 *
 * Returns 0, or:
 *	-EEXIST: a server has a volume of this name
 *	-EINVAL: the name, the size, the list of servers or an option is not allowed; there
 *		are fewer servers than replicas; they lend slabs of different lengths; or there
 *		are checksums and one replica
 *	-EDQUOT: at a server this credential has as many volumes as it may have, or it would have
 *		more memory reserved there
 *	-ENOSPC: a server keeps as many volumes as it can; or the servers have not so much memory
 *		free as is to be reserved, rbx_last_error() has the numbers
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_create(struct rbx_context *ctx, const char *servers, const char *name,
		      uint64_t size, const struct rbx_volume_create_options *options);

/**
 * rbx_volume_grow() - makes a named volume larger, which no program has open.
 * @size: bytes, as for rbx_volume_create(); at least what it has
 *
 * What is new reads as zeros, and is reserved if the volume was made with `reserve`. The volume
 * has the new size or the old one when the call was interrupted; then it can be called again.
 *
 * Returns 0, or:
 *	-ENOENT: none of the servers has it
 *	-EINVAL: the size is not allowed, or less than the volume has
 *	-EBUSY: a program has it open, rbx_last_error() names it; or more than half of its
 *		servers are not there
 *	-EEXIST: as rbx_volume_remove()
 *	-ESTALE: a program opened it meanwhile
 *	-EHOSTUNREACH: it is reserved, and one of its servers is not there
 *	-ENOSPC, -EDQUOT: as rbx_volume_create() with `reserve`; it has the old size
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_grow(struct rbx_context *ctx, const char *servers, const char *name,
		    uint64_t size);

/**
 * rbx_volume_extend() - makes a named volume larger, which this program has open.
 * @size: bytes, a multiple of 4 KiB; at least what it has
 *
 * What is new reads as zeros. Requests go on meanwhile; to what is new they may go as soon as this
 * has returned. If the process dies, the volume has the new size or the old one.
 *
 * Returns 0, or:
 *	-EINVAL: the size is not allowed, or less than the volume has
 *	-EFBIG: more than there was room for when it was opened: `size_max` of its options
 *	-EOPNOTSUPP: it has no name, or is reserved: rbx_volume_grow() while it is not open
 *	-ESTALE: another program has opened it, or too few of its servers answer
 *	-EBUSY, -ENOTCONN, -ETIMEDOUT: too few servers of a volume with one replica have
 *		answered; call it again
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until enough servers have accepted it.
 */
int rbx_volume_extend(struct rbx_volume *volume, uint64_t size);

/**
 * rbx_volume_rename() - gives a named volume another name, which no program has open.
 * @new_name: as for rbx_volume_create()
 *
 * It happens or it does not, at all servers. If the call was interrupted, the next
 * rbx_volume_open(), rbx_volume_grow() or rbx_volume_rename(), under either name, finds the volume
 * and has all servers agree; until then rbx_volume_list() tells the newest name, and
 * nobody else can make a volume of either name at its servers.
 *
 * Returns 0, or:
 *	-ENOENT: none of the servers has it
 *	-EINVAL: the new name is not allowed, or it is the one that the volume has
 *	-EEXIST: a server has a volume of the new name, and nothing was changed; or as
 *		rbx_volume_remove()
 *	-EHOSTUNREACH: not all servers that have it are given
 *	-EBUSY: a program has it open; rbx_last_error() names it
 *	-EACCES: it belongs to another credential
 *	-ESTALE: a program opened it meanwhile
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_rename(struct rbx_context *ctx, const char *servers, const char *name,
		      const char *new_name);

/**
 * rbx_volume_members_add() - gives a named volume more servers, which no program has open.
 * @servers: those that it has, as for rbx_volume_open(); more than half of them must be there
 * @new_servers: "host:port,host:port": those that it gets; all of them must be there
 *
 * It gets all of them or none. They have nothing of the volume yet: slabs are borrowed there as the
 * volume is written, and replicas that are missing are made there when a program has it open. If
 * the call was interrupted, it can be made again: servers that the volume got by it are no error
 * then. A server that was started anew is another one, also at the same address.
 *
 * Returns 0, or:
 *	-ENOENT: none of the servers has it
 *	-EEXIST: the volume has one of the new servers already; or one of these has another
 *		volume of that name; or as rbx_volume_remove()
 *	-EINVAL: a server is named twice, or lends slabs of another length
 *	-ENOSPC: the volume would have more than 64 servers; or one of the new ones has no room for
 *		a slab, or keeps as many volumes as it can
 *	-EDQUOT: at a new one this credential has as much memory or as many volumes as it may have
 *	-EBUSY: a program has it open, rbx_last_error() names it; or too few of its servers are
 *		there
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
	uint64_t incarnation; /* of this start of the server; another start is another server */
	uint32_t is_out; /* 1: it was lost, and is not needed to open the volume */
	uint32_t is_there; /* 1: it was asked, and has the volume */
	char address[256]; /* "host:port" by which it was asked; "": it was not */
};

/**
 * rbx_volume_members_list_sized() - tells which servers a named volume has.
 * @servers: some of them; those that cannot be reached are left out
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
 *	-EHOSTUNREACH: it is not out, and is not there
 *	-ENOSPC: it is not out, and without it there are fewer servers than replicas
 *	-ENOENT: none of the servers has the volume
 *	-EBUSY: a program has it open, rbx_last_error() names it; or too few of its servers are
 *		there
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

/**
 * rbx_volume_scrub() - reads what each replica of a range has, and repairs what is damaged.
 * @volume: it is open, and has checksums
 * @offset: where the range begins, a multiple of 4 KiB
 * @length_bytes: of the range, the same
 *
 * A read goes to one replica. So damage at another one may stay, until the page is damaged at all
 * of them. This reads all. A page that does not match its checksum is written anew from a replica
 * where it does; rbx_stats() counts both (`checksum_errors`, `checksum_repairs`). Requests go on
 * meanwhile. It reads up to 1 MiB at a time and has no limit of its own: call it for a part of the
 * volume after another, as fast as is wanted.
 *
 * Returns 0, or:
 *	-EIO: some page of the range is damaged at all replicas, or its slab has none: it is an
 *		error until it is written again. The rest of the range was read all the same
 *	-EOPNOTSUPP: the volume has no checksums
 *	-EINVAL: the range is not within the volume, or not of whole pages
 *	-ENOMEM: out of memory
 *	-EDEADLK: in a callback
 * Context: any thread; blocks.
 */
int rbx_volume_scrub(struct rbx_volume *volume, uint64_t offset, uint64_t length_bytes);

/**
 * rbx_volume_remove() - removes a named volume, and gives its memory back.
 * @force: also if a program has it open: that one is shut out; and also if so few of its servers
 *	are given that those could not open it, for the others will not come back
 *
 * A remove that was interrupted has happened or has not. If it has, whoever looks for volumes at
 * these servers next finishes it: a server that was away gives up what it has when it is named
 * again.
 *
 * It must belong to the credential of @ctx, unless that is an admin at the servers
 * (rdmabox-serve(1)).
 *
 * Returns 0, or:
 *	-ENOENT: none of the servers has it
 *	-EACCES: it belongs to another credential
 *	-EBUSY: a program has it open, rbx_last_error() names it; or opened it meanwhile
 *	-EHOSTUNREACH: too few of its servers are given
 *	-EEXIST: servers have different volumes of this name: name those of one of them
 *	-ESTALE: a program opened it meanwhile
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_remove(struct rbx_context *ctx, const char *servers, const char *name,
		      int force);

/* What the servers know of a named volume. */
struct rbx_volume_info {
	size_t size_bytes; /* of what was filled in; the rest is zero */
	char name[RBX_VOLUME_NAME_MAX]; /* that it has now */
	char writer[RBX_VOLUME_WRITER_MAX]; /* the program that opened it last */
	uint64_t volume_bytes; /* its length */
	uint64_t slab_bytes; /* the unit in which it takes memory */
	uint64_t keep_s; /* as in rbx_volume_create_options */
	uint32_t is_open; /* 1: the writer has it open now */
	uint32_t servers; /* that it has */
	uint32_t servers_there; /* of them, that were asked and have it */
	uint64_t volume_id; /* that no other volume ever has */
	uint32_t replicas; /* servers that have each slab */
	uint32_t servers_out; /* that were lost, and are not needed to open it */
	char owner[RBX_VOLUME_OWNER_MAX]; /* the credential that it was made with; "": no name */
	/* complete replicas that each slab has at least which was ever written: it can be opened
	 * without any servers less than that */
	uint32_t copies;
	/* memory that its servers keep for it, written or not, with all replicas; 0: it was made
	 * without `reserve` */
	uint64_t reserved_bytes;
	uint32_t checksums; /* 1: its servers keep a checksum of each page */
};

/**
 * rbx_volume_list_sized() - tells which named volumes servers have.
 * @infos: receives at most @max of them, in the order of their names
 * @info_bytes: of one struct, as the program knows it
 *
 * They are those of the credential of @ctx, or those of all if that is an admin at the servers.
 *
 * Returns how many there are, perhaps more than @max, or:
 *	-ENOMEM: memory ran out
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_list_sized(struct rbx_context *ctx, const char *servers,
			  struct rbx_volume_info *infos, uint32_t max, size_t info_bytes);

/**
 * rbx_volume_list() - tells which named volumes servers have.
 * @infos: receives at most @max of them, in the order of their names
 *
 * It fills in this version of the struct, as rbx_volume_list_sized().
 *
 * Returns how many there are, perhaps more than @max, or:
 *	-E...: as rbx_volume_list_sized()
 * Context: any thread; blocks until all servers have answered.
 */
static inline int rbx_volume_list(struct rbx_context *ctx, const char *servers,
				  struct rbx_volume_info *infos, uint32_t max)
{
	return rbx_volume_list_sized(ctx, servers, infos, max, sizeof(*infos));
}

#ifdef __cplusplus
}
#endif

#endif
