/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - a range of bytes on memory servers.
 *
 * A volume is a linear range of bytes made of slabs that memory servers lend,
 * each slab on `replicas` different servers. A write is acknowledged when every
 * live replica has it. A read is served by one live replica, and goes to another
 * if that one fails. A lost copy is rebuilt on another server of the volume.
 * Bytes that were never written read as zeros. With two replicas or more no data is
 * lost if a server dies; the default is one. It belongs to the context
 * that opened it, and its memory goes back to the servers when it is closed, unless it
 * has a name.
 */
#ifndef RDMABOX_VOLUME_H
#define RDMABOX_VOLUME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_volume; /* a range of remote memory on several servers */

enum rbx_event_kind {
	/* A server is dead. If it has not answered, that is known after the peer timeout, or
	 * after half of the lease if it could have been used again with what it has. */
	RBX_EVENT_SERVER_DOWN,
	RBX_EVENT_REBUILD_STARTED, /* the copies it held are made anew */
	RBX_EVENT_REBUILD_DONE, /* all slabs have all their replicas again */
	RBX_EVENT_REBUILD_STUCK, /* no server can take the lost copies */
	RBX_EVENT_DATA_LOST, /* the last copy of a slab is lost */
	/* A server of the pool has joined the volume, or one that was lost has returned. */
	RBX_EVENT_SERVER_ADDED,
	RBX_EVENT_SERVER_LEFT_OUT, /* a server could not join, or return; it is tried again */
	/* The open of a named volume takes long: what it waits for, and how many slabs are left of
	 * it, as often as every 5 s. The volume cannot be used yet. */
	RBX_EVENT_OPENING,
	/* So many events (slab_count) were not told, as the callback took too long. */
	RBX_EVENT_MISSED,
	/* A named volume with replicas, or one that is only read (read_only), is read and written
	 * no more, and the reason says why: another client has opened it, which ends no reader; it
	 * was removed; or too few of its servers answer, for which a reader waits. It is
	 * told once more when a server (server) has said who has the volume. */
	RBX_EVENT_STOPPED,
	RBX_EVENT_GOES_ON, /* the same volume: enough of its servers are there again */
	/* The pool that the volume was opened with is away or broken, and the reason says why
	 * (rbx_pool_trouble()): its members of before stay in force, so no new server joins. It is
	 * told once more when the reason is another one, and when the pool is as it should be. */
	RBX_EVENT_POOL_TROUBLE,
};

struct rbx_event {
	enum rbx_event_kind kind; /* what has happened */
	const char *server; /* its address, or "" */
	uint32_t slab_count; /* how many slabs it is about */
	const char *reason; /* one line */
};

/**
 * rbx_event_name() - says in words what has happened: "server down".
 *
 * Returns the words; "event" for a kind that this version of the library does not know.
 * Context: any thread, callbacks too; never blocks.
 */
const char *rbx_event_name(enum rbx_event_kind kind);

struct rbx_volume_options {
	size_t size_bytes; /* of this struct; rbx_volume_options_defaults() sets it */
	uint32_t replicas; /* copies of each slab, 1 to 3. Default: 1. */
	/* 1: a CRC32C for each 4 KiB page stays with the client, so that stale or torn
	 * data is -EIO and never junk. Requests must then be multiples of 4 KiB, else
	 * -EINVAL. Costs 1 KiB of memory for each MiB. Default: 0. */
	uint32_t checksums;
	/* Called when a server is lost, when a rebuild starts, ends or is stuck, when
	 * a server of a pool joins or cannot, when a pool is broken, and while an open takes
	 * long (enum rbx_event_kind), by a thread of the volume that does nothing else: one at a
	 * time, in order, and all of them before rbx_volume_close() returns, or a
	 * rbx_volume_open() that fails. If it is held up, only these two wait for it. What does
	 * not fit into a queue of 127 events meanwhile is told as RBX_EVENT_MISSED. It must not
	 * make a call that blocks: that is -EDEADLK. Default: NULL. */
	void (*event)(struct rbx_volume *volume, const struct rbx_event *event,
		      void *user);
	void *user; /* passed to `event`. Default: NULL. */
	/* 1: opening borrows nothing. A slab has memory from its first write on, and
	 * until it is discarded; while it has none it reads as zeros. A first write ends
	 * with -ENOSPC if no server will lend memory, with -EIO if no server is left, and
	 * with -ETIMEDOUT if the servers that are left lend nothing for twice
	 * peer_timeout_ms. Default: 0. */
	uint32_t on_demand;
	/* Opens the named volume of this name (rdmabox/named_volume.h), and not a new one: the size
	 * must be 0, and all options but the next and `event` are those of the volume.
	 * Default: NULL. */
	const char *name;
	/* 1: a named volume that another program has open is taken from it. Default: 0. */
	uint32_t take_over;
	/* Name of the label that says which servers fail together. The replicas of a slab are
	 * put on servers where its value differs, as long as there is a choice; a server
	 * without that label shares its fate with no other. Default: "rack". */
	char spread[64];
	/* Bytes that a named volume may grow to while it is open (rbx_volume_extend()). They cost
	 * addresses, and memory only as it grows. 0: four times what it has, and 1,024 slabs more
	 * at least. Default: 0. */
	uint64_t size_max;
	/* Bytes in each second that are copied to replicas that are made anew, once the volume is
	 * open: 1 MiB at least, and UINT64_MAX is no limit. 0: as many as the link carries while no
	 * request comes, and so few while some do that these are not held up. Default: 0. */
	uint64_t copy_rate;
	/* Bytes of a named volume with replicas that an open after a crash of its program copies at
	 * most, when it makes them equal: at least what was written in the last 10 s, if it is not
	 * more. Writes that jump about in more than that take about four times as long. Rounded to
	 * 64ths of slabs, and to 2^20 of them at most. 0: 16 GiB, and 16,384 of them at most.
	 * Default: 0. */
	uint64_t crash_copy;
	/* 1: a named volume is only read, while another program may have it open and write to it.
	 * The rest of the options is for who writes. See rbx_volume_open(). Default: 0. */
	uint32_t read_only;
	/* Bytes of the volume in each second that a thread of its own reads at all replicas, while
	 * it is open, to write anew what is damaged (rbx_volume_scrub()): 1 MiB at least. 0: none.
	 * The volume needs checksums, and a thread that polls (`pollers`). Default: 0. */
	uint64_t scrub_rate;
};

/* A read of a volume that is opened with read_only sees what was acknowledged so long before. */
#define RBX_READ_ONLY_LAG_MS 2000u

/**
 * rbx_volume_options_defaults_sized() - fills in the defaults of a struct of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_volume_options_defaults_sized(struct rbx_volume_options *options,
				       size_t size_bytes);

/**
 * rbx_volume_options_defaults() - fills in the defaults of this version of the struct.
 *
 * They are one replica, all memory borrowed by the open, no checksums and no events.
 *
 * Context: any thread, callbacks too; never blocks.
 */
static inline void
rbx_volume_options_defaults(struct rbx_volume_options *options)
{
	rbx_volume_options_defaults_sized(options, sizeof(*options));
}

/**
 * rbx_volume_open() - borrows memory and makes a volume of it.
 * @volume: receives the volume
 * @servers: "host:port,host:port", at least as many as replicas; or a pool that changes,
 *	"file:PATH" or "etcd://HOST:PORT/NAME" (pool.h)
 * @size: bytes, a multiple of 4 KiB; rounded up to whole slabs on the servers
 * @options: borrowed during the call; NULL takes the defaults
 *
 * All or nothing: after a failure nothing stays borrowed.
 *
 * All servers of a list must be there. Of a pool that changes, members that cannot be
 * connected, drain, are there under another address or lend slabs of another length are
 * left out, if there are as many others as replicas. RBX_EVENT_SERVER_LEFT_OUT names them.
 * While the volume is open a thread connects to them again and again, and to members that
 * are new. A server that was lost comes back in that way, too, also one of a list: empty if the
 * volume has no name.
 *
 * With read_only any number of programs, 64 at a server, read a named volume beside the one
 * that writes it, which does not notice. A reader takes nothing from that program, nor from the
 * servers. It goes on if that program closes the volume, dies or loses it to another one, if
 * servers of the volume are lost and return, and if it gets another name. A read returns:
 *
 * - all that was acknowledged RBX_READ_ONLY_LAG_MS before the read began, or what came later;
 * - of writes that are under way, or not acknowledged, any part or nothing: a page may be torn
 *   unless the volume has checksums. Two reads may tell first the new data, then the old ones;
 * - nothing of the order of writes: a later one may be seen, and an earlier one not yet.
 *
 * If too few servers answer to keep that, a read waits, for twice peer_timeout_ms and
 * RBX_READ_ONLY_LAG_MS at most, and then ends with -EIO. A machine that sleeps, or a virtual one
 * that is paused, does not count that time. All calls that change something end with -EROFS.
 * As the volume grows so does rbx_volume_size(), up to size_max. If the volume is removed,
 * RBX_EVENT_STOPPED tells it, and reads end with -ENOENT. Name all its servers, or a pool.
 *
 * Returns 0, or:
 *	-EINVAL: the size, the list of servers or an option is not allowed; a server is
 *		named twice; or the servers lend slabs of different lengths
 *	-E...: as rbx_pool_open()
 *	-ENOSPC: the servers cannot lend that much
 *	-EDQUOT: the quota of a server does not allow it
 *	-ENOTCONN: a server was lost meanwhile
 *	-ENOENT: with a name: no server has a volume of this name, or it was not made or not removed
 *		to its end
 *	-EACCES: with a name: it belongs to another credential
 *	-EBUSY: with a name: another program has it open, rbx_last_error() names it;
 *		with read_only: too many programs read it
 *	-ESTALE: with a name: another program opened it just now
 *	-EHOSTUNREACH: with a name: too many of its servers are missing, or do not accept this
 *		program
 *	-EIO: with a name: after a crash its replicas, or their checksums, cannot be made equal
 *	-EEXIST: with a name: servers have different volumes of it, see rbx_volume_remove()
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all memory is borrowed.
 * Lifetime: until rbx_volume_close().
 */
int rbx_volume_open(struct rbx_context *ctx, struct rbx_volume **volume,
		    const char *servers, uint64_t size,
		    const struct rbx_volume_options *options);

/**
 * rbx_volume_close() - waits for what is outstanding, and closes a volume.
 * @volume: NULL: nothing is done
 *
 * All its memory goes back to the servers, unless it has a name. A first write that still waits
 * for memory of a server ends with -ECANCELED.
 *
 * Returns 0, or:
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that opened it
 * Context: any thread; blocks until the servers have their memory again.
 */
int rbx_volume_close(struct rbx_volume *volume);

/**
 * rbx_volume_size() - tells how long a volume is.
 *
 * Returns its length in bytes now: a named volume may become larger while it is open.
 * Context: any thread, callbacks too; never blocks.
 */
uint64_t rbx_volume_size(const struct rbx_volume *volume);

/**
 * rbx_volume_add_server() - lets a volume use one more server from now on.
 * @server: "host:port"
 *
 * Slabs that lack a replica are rebuilt on it. The call returns before that is done;
 * RBX_EVENT_REBUILD_DONE tells of the end. If the server is lost and runs again, it comes back by
 * itself, as those that the volume was opened with: within a minute (RBX_EVENT_SERVER_ADDED). Then
 * it need not be added, which ends with -EINVAL.
 *
 * A named volume with replicas gets the server for good, as by rbx_volume_members_add(): the call
 * returns when its servers have noted that.
 *
 * Returns 0, or:
 *	-EINVAL: the volume has this server already, perhaps under another address; or its
 *		slabs have another length
 *	-ENOSPC: the volume has as many servers as it can have; or, if it has a name, the
 *		server has no room for a slab or for one more volume
 *	-EDQUOT: with a name: at the server this credential has as much memory or as many
 *		volumes as it may have
 *	-EEXIST: with a name: the server has another volume of it
 *	-EAGAIN: with a name: the server is being put out of the volume; try again
 *	-EBUSY: with a name: the server is being given to the volume, perhaps by a program that
 *		has died; try again, at the latest when its lease is over
 *	-ECANCELED: with a name: another program has taken the volume over, or too many of
 *		its servers are lost
 *	-EOPNOTSUPP: the volume is a named one with one replica
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until the server is connected.
 */
int rbx_volume_add_server(struct rbx_volume *volume, const char *server);

/**
 * rbx_volume_discard() - gives back memory that nobody will read again.
 *
 * For a volume that was opened on_demand. Slabs that lie wholly in the range read as
 * zeros from here on, and their memory goes back to its servers once what is
 * outstanding has ended. Parts of slabs stay as they are. A request that is outstanding
 * meanwhile comes before or after the discard.
 *
 * Returns 0, or:
 *	-EINVAL: the range ends beyond the volume
 *	-EOPNOTSUPP: the volume was not opened on_demand, or is a named one
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_volume_discard(struct rbx_volume *volume, uint64_t offset,
		       uint64_t length_bytes);

struct rbx_volume_status {
	uint32_t slabs; /* in all */
	uint32_t slabs_whole; /* with all replicas live */
	uint32_t slabs_rebuilding; /* a lost replica of them is being copied */
	uint32_t slabs_lost; /* no replica: reads end with -EIO */
	uint32_t servers; /* that the volume knows */
	uint32_t servers_up; /* that are connected */
	uint64_t rebuilt_bytes; /* copied by rebuilds since it was opened */
	uint32_t slabs_blank; /* with on_demand: zeros, and nothing is borrowed */
	uint32_t slabs_last; /* a single server has all of it: one death from loss */
	/* Were lost, and have memory again: pages not written since are -EIO. */
	uint32_t slabs_holed;
	uint32_t replicas; /* that each slab is to have */
	/* With all replicas live, but two of them where one failure takes both: no other
	 * server lent memory. */
	uint32_t slabs_together;
	uint32_t checksums; /* 1: it has them, so requests must be multiples of 4 KiB */
	/* Replicas that have begun to move to servers with more memory free. What they copy counts
	 * in rebuilt_bytes. */
	uint64_t replicas_moved;
	uint64_t scrub_passes; /* of the whole volume by `scrub_rate`, since it was opened */
	/* In the last of them: pages that could be read at no server, as they are damaged at all,
	 * no server has them, or those that do were away. */
	uint64_t scrub_bad_pages;
};

/**
 * rbx_volume_status_sized() - fills in a status of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * What this version of the library does not know is zero. In a child of the process
 * that opened the volume all of it is.
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_volume_status_sized(struct rbx_volume *volume,
			     struct rbx_volume_status *status,
			     size_t size_bytes);

/**
 * rbx_volume_status() - fills in the status of this version of the struct.
 *
 * Context: any thread, callbacks too; never blocks.
 */
static inline void rbx_volume_status(struct rbx_volume *volume,
				     struct rbx_volume_status *status)
{
	rbx_volume_status_sized(volume, status, sizeof(*status));
}

/**
 * rbx_read(), rbx_write() - carry out one request and wait for it.
 * @buf: borrowed during the call
 * @length: bytes, at least 1
 * @offset: in the volume, bytes
 *
 * The request is urgent (RBX_URGENT). If it is longer than what may be outstanding
 * (requests_max), it goes in portions, one after another; after an error the portions
 * before it are done.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, the range is empty or ends beyond the volume, or it
 *		is not of whole pages and the volume has checksums
 *	-EDEADLK: called in a callback
 *	-EIO: every replica is lost, or was lost and a page has not been written whole
 *		since; the data is not what was written; or the device of this machine failed
 *	-EFAULT: the buffer is no memory of the program, or not as long
 *	-ENOSPC: first write with on_demand: no server will lend memory
 *	-ETIMEDOUT: first write with on_demand: the servers lend nothing for twice
 *		peer_timeout_ms
 *	-ECANCELED: first write with on_demand: the volume was closed
 *	-ENOMEM: with buffers=direct: the buffer cannot be pinned
 * Context: any thread; blocks until the request has ended.
 */
int rbx_read(struct rbx_volume *volume, void *buf, size_t length,
	     uint64_t offset);
int rbx_write(struct rbx_volume *volume, const void *buf, size_t length,
	      uint64_t offset);

/**
 * rbx_readv(), rbx_writev() - carry out one request of several buffers and wait for it.
 * @iov: as of readv(2), borrowed during the call. Buffers of length 0 are skipped
 * @count: 1 to RBX_SEGMENTS_MAX buffers, together less than 4 GiB
 * @offset: in the volume, bytes
 *
 * It is one request, so it must not be longer than what may be outstanding
 * (requests_max).
 *
 * Returns 0, or:
 *	-EINVAL: there are too many buffers, or too many bytes for one request
 *	-E...: as rbx_read()
 * Context: any thread; blocks until the request has ended.
 */
int rbx_readv(struct rbx_volume *volume, const struct iovec *iov, int count,
	      uint64_t offset);
int rbx_writev(struct rbx_volume *volume, const struct iovec *iov, int count,
	       uint64_t offset);

#ifdef __cplusplus
}
#endif

#endif
