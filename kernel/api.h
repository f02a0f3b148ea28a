/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * api.h - remote memory for modules: the kernel's counterpart of rdmabox.h.
 *
 *	rbx_volume_open(&options, &volume);
 *	io = (struct rbx_io){ .op = RBX_IO_WRITE, .offset_bytes = 4096,
 *			      .sg = sg, .sg_count = 1, .done = done };
 *	rbx_volume_submit(volume, &io, NULL);
 *	...done(&io), with io.status
 *	rbx_volume_close(volume);
 *
 * A volume is a linear range of bytes made of slabs that memory servers lend, each
 * slab on `replicas` different servers. A write is acknowledged when every live
 * replica has it; a read is served by one and goes to another when that one fails;
 * a lost copy is made anew on another server. What cannot be served ends with an
 * error, never with junk.
 *
 * Pages are read and written where they are, by the local DMA key: none is copied,
 * none is registered, and no memory of this machine can be reached by a server.
 */
#ifndef RBX_KERNEL_API_H
#define RBX_KERNEL_API_H

#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#define RBX_KERNEL_VERSION "0.1.0"

struct rbx_node;
struct rbx_volume;

struct rbx_volume_options {
	const char *servers; /* "10.0.0.1:7471,10.0.0.2:7471": numbers, no names */
	u64 size_bytes; /* a multiple of 4 KiB */
	u32 replicas; /* 1 to 3 */
	u32 queue_pairs; /* for each server, 1 to 16 */
	u32 ios_max; /* that may be outstanding, of */
	u32 io_segments_max; /* so many segments each */
	/* An I/O to a server that fell silent ends within it; to one that talks but
	 * carries nothing out, within twice it; for what no other has, within half of
	 * the server's lease, if that is longer. */
	u32 peer_timeout_ms;
	const char *mode; /* the paper's: single, doorbell, merge, hybrid */
	bool on_demand; /* slabs have memory from their first write on */
	const void *secret; /* what is shared with the servers; NULL: nothing */
	size_t secret_bytes;
	bool insecure; /* no secret even beyond loopback */
	/* A CRC32C of each 4 KiB page is kept here: what comes back is what was
	 * written, or an error. It takes 0.1 % of the size. */
	bool checksums;
};

/* One replica, one queue pair, 128 I/Os of 32 segments, 5 s, hybrid, all memory
 * borrowed by the open, no checksums. */
void rbx_volume_options_defaults(struct rbx_volume_options *options);

/*
 * Opens a volume whose memory is all there when it returns. With on_demand it is not
 * more than the servers have free then, and a slab is lent with its first write, which
 * ends with -ENOSPC where others have taken it meanwhile and with -EIO where no server
 * is left; until then, and once it is discarded, it reads as zeros. All volumes on an
 * RDMA device share its window and its pollers, one for each of its completion vectors
 * and processors but 16 at most, and have room for 4,096 queue pairs. The
 * device may go, and come back: I/Os wait as if no server were reached. All that
 * options point to is borrowed during the call. Blocks. 0; -EINVAL a bad option, said
 * in the log; -EPERM no secret and not loopback; -EHOSTUNREACH, -ECONNREFUSED,
 * -ETIMEDOUT, -ENODEV nobody there; -EACCES the secret was refused;
 * -ENOSPC, -EDQUOT not enough memory lent; -EMEDIUMTYPE slabs of different sizes;
 * -ENOMEM.
 */
int rbx_volume_open(const struct rbx_volume_options *options,
		    struct rbx_volume **volume);

/* No I/O is outstanding or submitted any more. Gives all memory back. Blocks. */
void rbx_volume_close(struct rbx_volume *volume);

enum rbx_io_op {
	RBX_IO_READ,
	RBX_IO_WRITE,
};

/*
 * What is submitted with a plug waits in it for what comes next, so that
 * neighbours merge and one doorbell is enough. Whoever has no more to submit pulls
 * it; several may share one.
 */
struct rbx_plug {
	spinlock_t lock; /* guards the pieces that wait */
	struct rbx_node *first;
	struct rbx_node *last;
};

void rbx_plug_init(struct rbx_plug *plug);

/* The caller's until it is submitted, and again from done() on. */
struct rbx_io {
	enum rbx_io_op op;
	bool urgent; /* somebody waits: before what nobody waits for */
	u64 offset_bytes;
	struct scatterlist *sg; /* not mapped; borrowed until done() */
	u32 sg_count;
	int status; /* out: 0 or -errno */
	u64 ended_ns; /* out: when it was done, by ktime_get_ns() */
	/* Called once, by the thread of a poller, with bottom halves disabled; must
	 * not block. */
	void (*done)(struct rbx_io *io);
	/* The volume's. */
	u32 pieces_left; /* atomic */
	u32 mapped_count;
	bool is_mapped; /* for the device; with a poller.lock, or before it is submitted */
	struct rbx_io *next;
	struct rbx_node *zeros; /* pieces that have read nothing but zeros */
};

/*
 * Hands an I/O over. Never blocks, allocates nothing; process context. I/Os that
 * are outstanding together have no order, but writes that overlap leave one or the
 * other in each byte. 0: done() will be called. -EAGAIN: too many outstanding, try
 * after one has ended. -EINVAL: beyond the volume; or, with checksums, not whole
 * pages: then the offset and the length of each segment are multiples of 4 KiB, and
 * memory does not change while it is written. -ENOMEM: no DMA mapping now.
 * plug: where it waits; NULL: it leaves at once.
 */
int rbx_volume_submit(struct rbx_volume *volume, struct rbx_io *io,
		      struct rbx_plug *plug);

/*
 * Gives memory back that nobody will read again. Of a volume on_demand: slabs that lie
 * wholly in the range read as zeros from here on, and go back to their servers when
 * what is outstanding has ended; parts of slabs stay as they are. An I/O that is
 * outstanding meanwhile comes before or after it. Process context; never blocks. 0;
 * -EINVAL beyond the volume; -EOPNOTSUPP not on_demand.
 */
int rbx_volume_discard(struct rbx_volume *volume, u64 offset_bytes,
		       u64 length_bytes);

/* Sends all that waits in a plug. Process context; never blocks. */
void rbx_volume_unplug(struct rbx_volume *volume, struct rbx_plug *plug);

/* The NUMA node of its device, or NUMA_NO_NODE. */
int rbx_volume_node(const struct rbx_volume *volume);
u64 rbx_volume_size_bytes(const struct rbx_volume *volume);
/* What is lent, and discarded, at once. */
u64 rbx_volume_slab_bytes(const struct rbx_volume *volume);

struct rbx_volume_status {
	u32 servers;
	u32 servers_up;
	u32 slabs;
	u32 slabs_whole; /* with all replicas */
	u32 slabs_blank; /* of on_demand: zeros, and nothing is lent */
	u32 slabs_rebuilding;
	u32 slabs_lost; /* without a live one: reads fail */
	u32 slabs_last; /* all of it is on one server: a death from loss */
	/* Were lost, and have replicas again: pages not written since are -EIO. */
	u32 slabs_holed;
	u64 rebuilt_bytes;
	/* As in rdmabox.h. */
	u64 work_requests;
	u64 doorbells;
	u64 merged_requests;
	u64 window_waits;
	u64 retries;
	u64 failovers;
	u64 checksum_errors;
	u64 checksum_repairs; /* reads that wrote a bad copy anew */
	/* Of the device, which all volumes on it share. */
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

#endif
