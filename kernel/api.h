/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * api.h - volumes of remote memory, for modules: the kernel's counterpart of rdmabox.h.
 *
 *	rbx_volume_open(&options, &volume);
 *	io = (struct rbx_io){ .op = RBX_IO_WRITE, .offset_bytes = 4096,
 *			      .sg = sg, .sg_count = 1, .done = done };
 *	rbx_volume_submit(volume, &io, NULL);
 *	...done(&io), with io.status
 *	rbx_volume_close(volume);
 *
 * A volume is a range of bytes on memory servers. It consists of slabs that the servers
 * lend, each slab on `replicas` different servers. A write is acknowledged when every
 * live replica has it. A read is served by one replica, and by another one if that fails.
 * A lost replica is rebuilt on another server. A request that cannot be served ends with
 * an error, never with wrong data.
 *
 * Pages are read and written in place, with the local DMA key. None is copied and none is
 * registered, and no server can reach memory of this machine.
 */
#ifndef RBX_KERNEL_API_H
#define RBX_KERNEL_API_H

#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#define RBX_KERNEL_VERSION "0.1.0"

struct rbx_node;
struct rbx_volume;

#define RBX_HOLDER_BYTES 64
#define RBX_SERVER_ADDRESS_BYTES 80

/* How a volume is; the worst that holds. */
enum rbx_volume_state {
	RBX_VOLUME_WHOLE, /* each slab that has memory has all replicas */
	RBX_VOLUME_REBUILDING, /* replicas are being made anew */
	RBX_VOLUME_DEGRADED, /* replicas are missing, and no server would take them */
	RBX_VOLUME_LOST, /* what was on some slabs, or pages of them, cannot be read */
};

struct rbx_volume_options {
	const char *servers; /* "10.0.0.1:7471,10.0.0.2:7471": numbers, no names */
	/*
	 * The name of a volume that its servers keep (docs/volumes.md); NULL: memory that is
	 * borrowed until the close. It is opened as it was made: size_bytes 0, one replica and
	 * no checksums say nothing of it. on_demand neither.
	 */
	const char *volume;
	bool take_over; /* also if another client has it open, which is shut out */
	/* RBX_HOLDER_BYTES that receive who has it open, if that is why it is not opened; or
	 * NULL. */
	char *holder;
	u64 size_bytes; /* a multiple of 4 KiB */
	u32 replicas; /* 1 to 3 */
	u32 queue_pairs; /* for each server, 1 to 16 */
	u32 ios_max; /* the most that may be outstanding */
	u32 io_segments_max; /* the most segments of one I/O */
	/* An I/O ends within this time if its server is silent, and within twice this
	 * time if the server talks but carries nothing out. If no other server has the
	 * data it ends within half of the server's lease, if that is longer. */
	u32 peer_timeout_ms;
	/* Bytes in each second that are copied to replicas that are made anew, 1 MiB at least; 0:
	 * as many as the link carries, and few while I/Os come (core/copy_pace.h) */
	u64 copy_rate;
	/* Bytes of a named volume with replicas that an open after a crash copies at most; 0:
	 * 16 GiB. Writes that jump about in more are slower (core/extents.h) */
	u64 crash_copy;
	const char *mode; /* single, doorbell, merge or hybrid, as in the paper */
	bool on_demand; /* a slab gets memory at its first write */
	const void *secret; /* the secret of the servers; NULL: none */
	size_t secret_bytes;
	/* The name that the servers have for the secret, 1 to 31 characters of
	 * A-Z a-z 0-9 . _ -; NULL: it has none. */
	const char *credential;
	bool insecure; /* allow no secret beyond loopback */
	/* Keep a CRC32C of each 4 KiB page here, so that a read returns what was written,
	 * or an error. It takes 0.1 % of the size. */
	bool checksums;
	/* Told when the state is another one than it was, at most once a second; NULL: nobody is.
	 * By a worker of the system; may sleep, but must not close the volume. */
	void (*state_changed)(void *user, enum rbx_volume_state state);
	void *user;
};

/* One replica, one queue pair, 128 I/Os of 32 segments, 5 s, hybrid, all memory borrowed
 * by the open, no checksums. */
void rbx_volume_options_defaults(struct rbx_volume_options *options);

/*
 * Opens a volume. When it returns, all its memory is borrowed.
 *
 * With on_demand, memory is borrowed later; the open fails only if the servers have less
 * than the size free. A slab is borrowed at its first write. That write ends with -ENOSPC
 * if others have taken the memory meanwhile, and with -EIO if no server is left. Until
 * then the slab reads as zeros, and so it does after it was discarded.
 *
 * All volumes on an RDMA device share its window and its pollers. There is a poller for
 * each completion vector of the device, but no more than processors, and 16 at most. They
 * have room for 4,096 queue pairs. If the device is removed, I/Os wait as if no server
 * could be reached, until it comes back.
 *
 * The servers of a volume may be reached through several devices, 8 at most. If one is
 * removed, only the servers behind it are silent. With one device, memory is mapped for
 * DMA once for each I/O; with several, once for each server that it is sent to.
 *
 * All that options point to is borrowed during the call. Blocks. 0; -EINVAL: a bad
 * option, a server twice, or slabs of different sizes, see the log; -EPERM: no secret and not
 * loopback; -EHOSTUNREACH, -ECONNREFUSED, -ETIMEDOUT, -ENODEV: no server there; -EACCES: the
 * secret was refused; -ENOSPC, -EDQUOT: not enough memory; -EXDEV: more devices than
 * can be; -ENOMEM; -EINTR: a signal came.
 *
 * A named volume: -ENOENT: these servers have none of this name; -EBUSY: another client has
 * it open; -ESTALE: one was faster; -EHOSTUNREACH: too many of its servers are missing; -EUSERS: a
 * server has no room for another client; -EACCES: it belongs to another credential; -E2BIG: its
 * map would take more than an eighth of this machine's memory. If servers are missing that may
 * serve the client before, it blocks for two leases.
 */
int rbx_volume_open(const struct rbx_volume_options *options,
		    struct rbx_volume **volume);

/*
 * Connects to one more server, "10.0.0.1:7471", which lends memory from then on. A named volume
 * with replicas has it as a member when this returns. One that is lost and serves again later is
 * added by itself; one of a named volume, if it still has its memory. Blocks. 0; -EINVAL: it is no
 * address, one of the servers already, or lends slabs of another size; -EOPNOTSUPP: a named volume
 * with one replica; -EAGAIN: try again, it is just being given up, or is the first one behind
 * another device and I/Os from before take too long; -EEXIST: it has not been given
 * up yet; -ENOSPC: the volume has as many servers as can be, or this one has no room; -EINTR: a
 * signal came while another server was being connected; and as rbx_volume_open().
 */
int rbx_volume_add_server(struct rbx_volume *volume, const char *server);

/*
 * The peer timeout is another one from now on. A connection that is being repaired keeps that
 * which it had. Waits for a server that is being connected. 0; -EINVAL: it is less than 400 ms;
 * -EINTR: a signal came meanwhile.
 */
int rbx_volume_set_peer_timeout(struct rbx_volume *volume, u32 peer_timeout_ms);

/*
 * Servers that are connected from now on are asked for this secret; so is a server that was lost
 * and comes again. A connection that is only repaired needs none. Waits as the one before. 0;
 * -EINVAL: it is not of 16 to 4096 bytes; -ENOMEM; -EINTR.
 */
int rbx_volume_set_secret(struct rbx_volume *volume, const void *secret, size_t secret_bytes);

/* Gives all memory back, but that of a named volume. No I/O may be outstanding or be
 * submitted any more. Blocks. */
void rbx_volume_close(struct rbx_volume *volume);

enum rbx_io_op {
	RBX_IO_READ,
	RBX_IO_WRITE,
};

/*
 * I/Os that are submitted with a plug wait in it for the next ones, so that neighbours
 * merge and one doorbell is enough. A caller that has no more to submit calls
 * rbx_volume_unplug(). Several callers may share a plug.
 */
struct rbx_plug {
	spinlock_t lock; /* guards the pieces that wait */
	struct rbx_node *first;
	struct rbx_node *last;
};

void rbx_plug_init(struct rbx_plug *plug);

/* The caller owns it before it is submitted, and again from done() on. */
struct rbx_io {
	enum rbx_io_op op;
	bool urgent; /* a thread waits for it, so it goes before others */
	u64 offset_bytes;
	struct scatterlist *sg; /* not mapped; borrowed until done() */
	u32 sg_count;
	int status; /* out: 0 or -errno */
	u64 ended_ns; /* out: when it ended, by ktime_get_ns() */
	/* Called once, by the thread of a poller, with bottom halves disabled. Must not
	 * block. */
	void (*done)(struct rbx_io *io);
	/* Used by the volume. */
	u32 pieces_left; /* atomic */
	u32 mapped_count;
	bool is_mapped; /* for the first device; guarded by its poller.lock once it is submitted */
	struct rbx_io *next;
	struct rbx_node *zeros; /* pieces that have read only zeros */
};

/*
 * Submits an I/O. Never blocks, allocates nothing; process context. I/Os that are
 * outstanding together have no order. If writes overlap, each byte is of one of them. 0:
 * done() will be called. -EAGAIN: too many are outstanding, try again after one has
 * ended. -EINVAL: beyond the volume, or not whole pages although the volume has
 * checksums: then the offset and the length of each segment are multiples of 4 KiB, and
 * the memory does not change while it is written. -ENOMEM: no DMA mapping now. plug: the
 * I/O waits there; NULL: it is sent at once.
 */
int rbx_volume_submit(struct rbx_volume *volume, struct rbx_io *io,
		      struct rbx_plug *plug);

/*
 * Gives memory back that nobody will read again, if the volume is on_demand. Slabs that
 * are wholly in the range read as zeros from now on, and go back to their servers when
 * outstanding I/Os to them have ended. Slabs that are only partly in the range stay as
 * they are. An I/O that is outstanding meanwhile comes before or after the discard.
 * Process context; never blocks. 0; -EINVAL: beyond the volume; -EOPNOTSUPP: not
 * on_demand, or a named volume.
 */
int rbx_volume_discard(struct rbx_volume *volume, u64 offset_bytes,
		       u64 length_bytes);

/* Sends all that waits in a plug. Process context; never blocks. */
void rbx_volume_unplug(struct rbx_volume *volume, struct rbx_plug *plug);

/* The NUMA node of the volume's first device, or NUMA_NO_NODE. */
int rbx_volume_node(const struct rbx_volume *volume);
u64 rbx_volume_size_bytes(const struct rbx_volume *volume);
u32 rbx_volume_replicas(const struct rbx_volume *volume);
bool rbx_volume_has_checksums(const struct rbx_volume *volume);
/* The size of a slab: the unit of borrowing and of discarding. */
u64 rbx_volume_slab_bytes(const struct rbx_volume *volume);

struct rbx_volume_status {
	u32 servers;
	u32 servers_up;
	u32 slabs;
	u32 slabs_whole; /* with all replicas */
	u32 slabs_blank; /* on_demand: not borrowed, read as zeros */
	u32 slabs_rebuilding;
	u32 slabs_lost; /* without a live replica: reads fail */
	u32 slabs_last; /* all live replicas are on one server, whose death would lose data */
	/* They were lost and have replicas again. Pages not written since read as -EIO. */
	u32 slabs_holed;
	u32 slabs_together; /* whole, but two replicas are in one failure domain */
	u64 rebuilt_bytes;
	u64 replicas_moved; /* to servers with more memory free */
	/* As in rdmabox.h. */
	u64 work_requests;
	u64 doorbells;
	u64 merged_requests;
	u64 window_waits;
	u64 retries;
	u64 failovers;
	u64 checksum_errors;
	u64 checksum_repairs; /* reads that rewrote a bad replica */
	/* Of the device, shared by all volumes on it; of several, the sum. */
	u64 window_bytes;
	u64 inflight_bytes;
	u64 inflight_bytes_max;
	u64 completions;
	u64 polls;
	u64 empty_polls;
	u64 arms;
	u64 wakeups;
};

void rbx_volume_status(struct rbx_volume *volume,
		       struct rbx_volume_status *status);
enum rbx_volume_state rbx_volume_state(struct rbx_volume *volume);
/* "whole", "rebuilding", "degraded" or "lost". */
const char *rbx_volume_state_name(enum rbx_volume_state state);

struct rbx_server_status {
	char address[RBX_SERVER_ADDRESS_BYTES];
	/*
	 * "up"; "draining": it lends no more, and what it has leaves; "silent": its connection is
	 * being repaired; "failed": it has the last copy of something of a named volume, and is
	 * waited for; "away": it is none of the servers now, and is tried again.
	 */
	const char *state;
	u32 slabs; /* replicas that it has, or is asked for */
	u64 free_bytes; /* that it would lend, as it has said last */
};

/* Of the server of this number, from 0 on, of those that it was opened with or that were added. 0;
 * -ENOENT: there are fewer. Process context. */
int rbx_volume_server_status(struct rbx_volume *volume, u32 index,
			     struct rbx_server_status *status);

#endif
