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
 * end with -EIO.
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
#include "rdmabox/volume_servers.h"

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
	/* 1: it may be larger than all memory of its servers, lent or not, so that it can never be
	 * written in full: for one that will get more servers, or stays empty in part. Default:
	 * 0. */
	uint32_t overcommit;
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
 * @servers: "host:port,host:port": those that will have it; if there are more
 *	than 64, the 64 of them that have most memory free
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
 *		free as is to be reserved; or they have less in all than the volume would take,
 *		without `overcommit`: rbx_last_error() has the numbers
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_create(struct rbx_context *ctx, const char *servers, const char *name,
		      uint64_t size, const struct rbx_volume_create_options *options);

/**
 * rbx_volume_grow() - makes a named volume larger, which no program has open.
 * @servers: those that it has; more than half of them must be there, and all that are not out if
 *	it is reserved
 * @size: bytes, as for rbx_volume_create(); at least what it has
 *
 * What is new reads as zeros, and is reserved if the volume was made with `reserve`. The volume
 * has the new size or the old one when the call was interrupted; then it can be called again. A
 * server that does not answer learns of the new size when a program opens the volume while it is
 * there: `server_away` of the options of @ctx is told of it.
 *
 * Returns 0, or:
 *	-ENOENT: none of the servers has it
 *	-EINVAL: the size is not allowed, or less than the volume has
 *	-EBUSY: a program has it open, rbx_last_error() names it
 *	-EEXIST: as rbx_volume_remove()
 *	-ESTALE: a program opened it meanwhile
 *	-EHOSTUNREACH: too few of its servers are there
 *	-EOWNERDEAD: something of it is lost: rbx_volume_clear_lost() comes first
 *	-ENOSPC, -EDQUOT: as rbx_volume_create() with `reserve`; or all memory of those of its
 *		servers that are there is less than it would take: rbx_volume_grow_beyond(). It has
 *		the old size
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_grow(struct rbx_context *ctx, const char *servers, const char *name,
		    uint64_t size);

/**
 * rbx_volume_grow_beyond() - the same, also to more than all memory that its servers have.
 *
 * As `overcommit` of rbx_volume_create_options.
 *
 * Returns 0, or:
 *	-E...: as rbx_volume_grow()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_grow_beyond(struct rbx_context *ctx, const char *servers, const char *name,
			   uint64_t size);

/**
 * rbx_volume_extend() - makes a named volume larger, which this program has open.
 * @size: bytes, a multiple of 4 KiB; at least what it has
 *
 * What is new reads as zeros, and is reserved if the volume was made with `reserve`: all of it, or
 * the volume does not grow. Requests go on meanwhile; to what is new they may go as soon as this
 * has returned. If the process dies, the volume has the new size or the old one. How much memory
 * the servers have is not looked at, unless it is reserved.
 *
 * Returns 0, or:
 *	-EINVAL: the size is not allowed, or less than the volume has
 *	-EFBIG: more than there was room for when it was opened: `size_max` of its options
 *	-EOPNOTSUPP: it has no name
 *	-ENOSPC, -EDQUOT: it is reserved, and its servers do not lend so much;
 *		rbx_last_error() has the numbers
 *	-EHOSTUNREACH: it is reserved, and one of its servers is away that is not out
 *	-EAGAIN: it is reserved, and a server has lent memory that is still in use here; call it
 *		again
 *	-ENOMEM: it is reserved, and this machine has no memory for a list of slabs
 *	-EOWNERDEAD: something of it is lost: rbx_volume_clear_lost() comes first
 *	-ESTALE: another program has opened it, or too few of its servers answer
 *	-EHOSTUNREACH, -ENOTCONN, -ETIMEDOUT: too few servers of a volume with one replica have
 *		answered, or not all of one that is reserved; call it again
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until enough servers have accepted it.
 */
int rbx_volume_extend(struct rbx_volume *volume, uint64_t size);

/**
 * rbx_volume_rename() - gives a named volume another name, which no program has open.
 * @servers: those that it has; more than half of them must be there. If @servers has others
 *	besides, these must be there as well: they may have a volume of the new name
 * @new_name: as for rbx_volume_create()
 *
 * It happens or it does not. If the call was interrupted, the next rbx_volume_open(),
 * rbx_volume_grow() or rbx_volume_rename() finds the volume and has all servers agree, under either
 * name as long as it is open whether it has happened; until then rbx_volume_list() tells the
 * newest name, and nobody else can make a volume of either name at servers that were asked.
 *
 * A server that does not answer learns of it when a program opens the volume while it is there:
 * `server_away` of the options of @ctx is told of it. The volume is not found by its former name
 * there either, but no other one can have that name at that server until then. If a volume with the
 * new name is made there meanwhile, the volume cannot be opened while that server is named, until
 * one of the two is renamed.
 *
 * Returns 0, or:
 *	-ENOENT: none of the servers has it
 *	-EINVAL: the new name is not allowed, or it is the one that the volume has
 *	-EEXIST: a server has a volume of the new name, and nothing was changed; or as
 *		rbx_volume_remove()
 *	-EHOSTUNREACH: too few of its servers are there; or one that is away may be none of its
 *		servers
 *	-EBUSY: a program has it open; rbx_last_error() names it
 *	-EACCES: it belongs to another credential
 *	-ESTALE: a program opened it meanwhile
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all servers have answered.
 */
int rbx_volume_rename(struct rbx_context *ctx, const char *servers, const char *name,
		      const char *new_name);

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
 * volume after another, as fast as is wanted; or have the library do so (`scrub_rate` of struct
 * rbx_volume_options).
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
 * @servers: those that it has; more than half of them must be there. `server_away` of the options
 *	of @ctx is told of the others
 * @force: also if a program has it open: that one is shut out; and also if so few of its servers
 *	are there that those could not open it, for the others will not come back
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
 *	-EBUSY: a program has it open, rbx_last_error() names it
 *	-EHOSTUNREACH: too few of its servers are there
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
	uint32_t is_lost; /* 1: servers were given up, and what no other one has is lost:
			   * rbx_volume_loss_look() */
	/* 1: each slab that was ever written, and is not lost, has all its replicas, and all
	 * servers are there that are not out; with is_open: the writer uses all of these. So
	 * another server may be restarted, if there are replicas */
	uint32_t is_whole;
	/* 1: so few of its servers were asked and have it that it cannot be opened: not more than
	 * half, or not one more than may be missing for `copies` */
	uint32_t too_few;
};

/**
 * rbx_volume_list_sized() - tells which named volumes servers have.
 * @infos: receives at most @max of them, in the order of their names
 * @info_bytes: of one struct, as the program knows it
 *
 * They are those of the credential of @ctx, or those of all if that is an admin at the servers.
 * Servers that do not answer are left out, unless none does: `server_away` of the options of @ctx
 * is told of them. What the others know may be old then.
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
