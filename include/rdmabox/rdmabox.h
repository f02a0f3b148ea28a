/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox.h - remote memory for programs.
 *
 * A program hands RDMAbox reads and writes of remote memory. RDMAbox merges
 * neighbours into one work request, chains the rest behind one doorbell, keeps
 * what is in flight inside a window, posts, polls and reaps, over an RDMA NIC
 * or, where there is none, over a software device of its own.
 *
 *	struct rbx_context *ctx;
 *	struct rbx_volume *volume;
 *
 *	rbx_open(&ctx, NULL);
 *	rbx_volume_open(ctx, &volume, "10.0.0.1:7471,10.0.0.2:7471", 1 << 30,
 *			NULL);
 *	rbx_write(volume, page, sizeof(page), 4096);
 *	rbx_read(volume, page, sizeof(page), 4096);
 *	rbx_volume_close(volume);
 *	rbx_close(ctx);
 *
 * Read this page from top to bottom: context, volume, requests, completion,
 * regions, peers, numbers. What not every program needs has a page of its own:
 * endpoint.h (two programs and a connection, without a server),
 * message.h (to the program that serves), tuning.h (what a device likes),
 * congestion.h (how much may be in flight), verbs.h (plain verbs beside all
 * this), and for a program that serves memory itself server.h.
 *
 * Every call returns 0, a count, or -errno. After a failure rbx_last_error()
 * says in one line what failed, why, and how to mend it. All calls may be made
 * from any thread unless their comment says otherwise; a handle must not be
 * used while or after it is closed.
 *
 * Callbacks (of completions, messages and events) run on threads of the library.
 * In them calls that wait return -EDEADLK: all that open, close, read, write,
 * borrow, return or wait for something. After fork() a context and all that was
 * opened with it are the parent's: in the child calls return -EINVAL, and what is
 * there is left alone; a child opens its own.
 */
#ifndef RDMABOX_H
#define RDMABOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdmabox/congestion.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RBX_VERSION "0.1.0"

/* The opaque handles. */
struct rbx_context; /* a device, its configuration and its numbers */
struct rbx_volume; /* a range of remote memory on several servers */
struct rbx_region; /* local memory, registered once */
struct rbx_peer; /* one memory server, without volume */
struct rbx_remote; /* memory borrowed from one peer */

/**
 * rbx_last_error() - why the last failed call of this thread failed.
 *
 * Returns one line without a newline, "" where nothing failed yet. It is valid
 * until the next call of this thread that fails.
 */
const char *rbx_last_error(void);

/* ---- Context: a device and how it is to be used ---------------------------
 *
 * Options are a struct; fill it with rbx_options_defaults() and change what
 * matters, by field or by text of the field's name ("window=1M").
 *
 * The first field of a struct that will grow is its size, as the program knows
 * it: so a program runs with a library of another version. What the program's
 * struct has not got keeps its default; what the library's has not got must be
 * zero, else -EINVAL. The functions that are `static inline` here put the size in.
 */
#define RBX_POLLERS_PEER 0xffffffffu
#define RBX_POLLERS_QUEUE_PAIR 0xfffffffeu

struct rbx_options {
	size_t size_bytes; /* of this struct */
	/* auto | verbs | soft | soft:tcp. `auto` takes verbs where a device
	 * is, else soft, and says which and why; a named fabric never falls
	 * back to another. The default is auto. */
	char fabric[16];
	/* verbs: "mlx5_0" or "mlx5_0:1"; soft: "registered" wants memory
	 * registered, as most NICs do; "": choose. With `auto` a device that is
	 * named means verbs, but for "registered", which means soft. */
	char device[64];
	int gid_index; /* verbs: -1, the default, chooses */
	/* How requests become work requests (paper, section IV-A):
	 * single   one work request and one doorbell for each request
	 * doorbell chaining only
	 * merge    merging on MR only
	 * hybrid   both; the default */
	char mode[16];
	/* How the device gets at buffers that lie in no region, where no one
	 * key covers all memory (paper, section IV-A):
	 * staging  they are copied through registered memory (preMR)
	 * direct   each is registered for its request (dynMR)
	 * auto     short ones are copied, long ones registered, from the
	 *          break-even on that the tuning file says; without it that is
	 *          measured by rbx_open() in less than 20 ms. Where a buffer
	 *          cannot be registered it is copied. The default.
	 * Where one key covers all memory (soft; NICs with on_demand_paging),
	 * direct and auto post buffers as they are. */
	char buffers[16];
	/* What a poller does between completions (paper, section III-B):
	 * busy           polls for ever
	 * event          sleeps, and takes one completion for each event
	 * event-batch:N  takes up to N for each event
	 * hybrid         goes on until a poll finds nothing, then sleeps
	 * adaptive       goes on through the gaps that are cheaper to spend
	 *                polling than sleeping, which it finds out by itself;
	 *                the default
	 * adaptive:RETRY[:BATCH]  through RETRY empty polls (algorithm 3; the
	 *                paper has 120), at most BATCH completions each
	 * shared:M       busy, with M pollers for all peers, whatever
	 *                `pollers` is by default
	 * rbx_polling_set() changes it later. */
	char polling[32];
	/* adaptive: of its time that a poller may spend on polls which find
	 * nothing, 1 to 100 percent; 100, the default: no bound. */
	uint32_t poll_cpu_percent;
	/* How many bytes may be in flight on the device, all peers together
	 * (paper, section IV-A):
	 * off    no limit
	 * SIZE   so many, at least one fragment
	 * aimd   grows step by step, is halved when round trips get long
	 * delay  goes by how round trips change
	 * auto   finds the least that gives full throughput, and stays there;
	 *        the default */
	char window[16];
	/* A policy of the program's own in place of `window` (congestion.h);
	 * NULL: none. Borrowed until rbx_close(). */
	const struct rbx_congestion_ops *congestion;
	/* For measurements of pacing, soft only: off (the default), or WORK_REQUESTS:NS. A
	 * work request posted while more than WORK_REQUESTS are queued costs NS
	 * nanoseconds for each one too many. */
	char overload[16];
	/* `window`, counted; 0, the default: no limit. */
	uint32_t window_work_requests;
	uint32_t fragment_bytes; /* longer requests are split; a power of two,
				    4 KiB to 256 KiB; 131072 */
	uint32_t queue_pairs; /* per peer, 1 to 16; 0, the default: as the tuning
				 file says, else 1 */
	/* Threads that poll, each with a completion queue, 1 to 16 for all
	 * peers; 1. 0: the program calls rbx_poll() itself, and no policy is
	 * followed; RBX_POLLERS_PEER ("peer"), RBX_POLLERS_QUEUE_PAIR
	 * ("queue_pair"): one for each, at most 64. */
	uint32_t pollers;
	uint32_t requests_max; /* fragments that may be outstanding, of a volume or
				  of borrowed memory, 64 to 65536; 4096 */
	/* A request to a peer that fell silent ends within it; resuming goes on
	 * till then. To one that talks but carries nothing out, within twice it:
	 * new connections are tried first. For what nobody else has, within half
	 * of the server's lease, if that is longer. 5000. */
	uint32_t peer_timeout_ms;
	char secret_file[256]; /* shared secret; "", the default: none */
	uint32_t insecure; /* 1: no secret even beyond loopback; 0 */
	/* What rdmabox-tune(1) wrote; "", the default: $XDG_CONFIG_HOME/rdmabox/tune.json or
	 * ~/.config/rdmabox/tune.json; "none": no file. An option that was set
	 * goes before it, and a file that cannot be read is only told of, by
	 * rbx_describe(). */
	char tune_file[256];
	/* 1, verbs: one key covers all memory, of which the NIC takes page faults
	 * instead of having it pinned (implicit on-demand paging). Nothing is
	 * copied or registered, but a page that is not there costs much: packets
	 * are dropped and waited for. 0. */
	uint32_t on_demand_paging;
	uint32_t traffic_class; /* verbs: of the packets, 0 to 255: DSCP and ECN,
				   from which a RoCE network makes its priority,
				   InfiniBand its service level; 0, the default: as
				   the route has it */
};

/** rbx_options_defaults_sized() - fills in the defaults of a struct of that size. */
void rbx_options_defaults_sized(struct rbx_options *options, size_t size_bytes);

/** rbx_options_defaults() - the same for this version of the struct. */
static inline void rbx_options_defaults(struct rbx_options *options)
{
	rbx_options_defaults_sized(options, sizeof(*options));
}

/**
 * rbx_options_set() - changes one option by text, "window=1M".
 *
 * Returns 0 or -EINVAL; then rbx_last_error() lists what is allowed.
 */
int rbx_options_set(struct rbx_options *options, const char *key_value);

/**
 * rbx_size_parse() - a size in text, as in options and in the arguments of rdmabox(1).
 * @text: a whole number, followed or not by K, M, G or T, or by KiB, MiB, GiB or TiB,
 *	all of 1024, in either case: "64K", "1g", "2MiB".
 *
 * Returns 0 or -EINVAL.
 */
int rbx_size_parse(const char *text, uint64_t *bytes);

/**
 * rbx_open() - opens a device.
 * @ctx: receives the context.
 * @options: borrowed during the call; NULL for the defaults.
 *
 * Returns 0, -EINVAL for a bad option, -ENODEV where the fabric has no device,
 * -ENOMEM where memory cannot be had or pinned, -ENOENT or -EACCES where the
 * secret file cannot be read. Blocks for the opening of the device.
 */
int rbx_open(struct rbx_context **ctx, const struct rbx_options *options);

/**
 * rbx_close() - closes a context whose volumes, peers and regions are closed.
 * @ctx: NULL: nothing is done, as by all functions that close something.
 *
 * Returns 0; else nothing was done: -EBUSY while one of them is open, -EDEADLK in a
 * callback, -EINVAL in a child of the process that opened it.
 */
int rbx_close(struct rbx_context *ctx);

/**
 * rbx_polling_set() - changes the polling policy of an open context.
 * @polling: as the option.
 *
 * The pollers follow it when the call returns; their number stays, so shared:M
 * is possible where there are M. Returns 0, -EINVAL for a text that is none,
 * -EBUSY where the pollers that are there cannot follow it or the program polls
 * itself, -EDEADLK in a completion callback. Waits for callbacks under way.
 */
int rbx_polling_set(struct rbx_context *ctx, const char *polling);

/**
 * rbx_describe() - the effective configuration, a line "key=value" an option,
 * and what was taken: using (fabric and device, and why), taken (the same in two
 * words), registering (which buffers), tuning (which file).
 *
 * Returns how many bytes the text has without its NUL, as snprintf() does.
 */
int rbx_describe(struct rbx_context *ctx, char *text, size_t size_bytes);

/* ---- Volume: remote memory that survives ----------------------------------
 *
 * A volume is a linear range of bytes made of slabs that memory servers lend,
 * each slab on `replicas` different servers. A write is acknowledged when every
 * live replica has it; a read is served by one live replica and goes to another
 * when that one fails. A lost copy is rebuilt on another server of the volume.
 * A volume reads as zeros where it was never written. It belongs to the context
 * that opened it and its memory goes back when it is closed.
 */
enum rbx_event_kind {
	RBX_EVENT_SERVER_DOWN, /* a server is lost */
	RBX_EVENT_REBUILD_STARTED, /* the copies it held are made anew */
	RBX_EVENT_REBUILD_DONE, /* all slabs have all their replicas again */
	RBX_EVENT_REBUILD_STUCK, /* no server can take the lost copies */
	RBX_EVENT_DATA_LOST, /* the last copy of a slab is gone */
};

struct rbx_event {
	enum rbx_event_kind kind;
	const char *server; /* address, or "" */
	uint32_t slab_count; /* how many slabs it is about */
	const char *reason; /* one line */
};

struct rbx_volume_options {
	size_t size_bytes; /* of this struct */
	uint32_t replicas; /* 1 to 3 */
	/* 1: a CRC32C for each 4 KiB page stays with the client, so that stale
	 * or torn data is -EIO and never junk. Requests must then be multiples
	 * of 4 KiB, else -EINVAL. Costs 1 KiB a MiB. */
	uint32_t checksums;
	/* Called from a thread of the library; must not block. */
	void (*event)(struct rbx_volume *volume, const struct rbx_event *event,
		      void *user);
	void *user;
	/* 1: opening borrows nothing. A slab has memory from its first write on,
	 * which ends with -ENOSPC where no server lends any, with -EIO where
	 * none is left, and with -ETIMEDOUT where those that are left lend
	 * nothing for twice peer_timeout_ms, until it is discarded; while it
	 * has none it reads as zeros. */
	uint32_t on_demand;
};

/** rbx_volume_options_defaults_sized() - one replica, all memory borrowed by the
 * open, no checksums, no events. */
void rbx_volume_options_defaults_sized(struct rbx_volume_options *options,
				       size_t size_bytes);

/** rbx_volume_options_defaults() - the same for this version of the struct. */
static inline void
rbx_volume_options_defaults(struct rbx_volume_options *options)
{
	rbx_volume_options_defaults_sized(options, sizeof(*options));
}

/**
 * rbx_volume_open() - borrows memory and makes a volume of it.
 * @servers: "host:port,host:port"; at least as many as replicas.
 * @size: bytes, a multiple of 4 KiB; rounded up to whole slabs on the servers.
 * @options: borrowed during the call; NULL for the defaults.
 *
 * All or nothing: after a failure nothing stays borrowed. Returns 0, -EINVAL,
 * -EHOSTUNREACH or -ETIMEDOUT where a server cannot be reached, -EACCES where
 * it refuses the secret, -EPERM if it is another machine and there is no secret
 * (`secret_file`, or `insecure`), -ENOSPC where the servers cannot lend that much,
 * -EDQUOT where a server's quota does not allow it, -ENOMEM. Blocks.
 */
int rbx_volume_open(struct rbx_context *ctx, struct rbx_volume **volume,
		    const char *servers, uint64_t size,
		    const struct rbx_volume_options *options);

/**
 * rbx_volume_close() - waits for what is outstanding and gives all back.
 *
 * The first write of a slab that waits for memory which no server lends, or not soon, ends
 * with -ECANCELED.
 * Returns 0, or -EDEADLK or -EINVAL as rbx_close(). Blocks.
 */
int rbx_volume_close(struct rbx_volume *volume);

/** rbx_volume_size() - bytes, as asked for. */
uint64_t rbx_volume_size(const struct rbx_volume *volume);

/**
 * rbx_volume_add_server() - lets a volume use one more server from now on.
 *
 * Slabs that lack a replica are rebuilt on it; it returns before that is done, which
 * RBX_EVENT_REBUILD_DONE tells. A server that was lost and runs again does not come
 * back by itself: it is added like a new one. Errors as rbx_volume_open().
 */
int rbx_volume_add_server(struct rbx_volume *volume, const char *server);

/**
 * rbx_volume_discard() - gives back what nobody will read again.
 *
 * Of a volume that was opened on_demand. Slabs that lie wholly in the range read
 * as zeros from here on, and their memory goes back to its servers once what is
 * outstanding has ended; parts of slabs stay as they are. A request that is
 * outstanding meanwhile comes before or after it. Any thread; does not block.
 * Returns 0, -EINVAL beyond the volume, -EOPNOTSUPP not on_demand.
 */
int rbx_volume_discard(struct rbx_volume *volume, uint64_t offset,
		       uint64_t length_bytes);

struct rbx_volume_status {
	uint32_t slabs; /* in all */
	uint32_t slabs_whole; /* with all replicas live */
	uint32_t slabs_rebuilding;
	uint32_t slabs_lost; /* no replica: reads end with -EIO */
	uint32_t servers;
	uint32_t servers_up;
	uint64_t rebuilt_bytes; /* copied by rebuilds since it was opened */
	uint32_t slabs_blank; /* of on_demand: zeros, and nothing is borrowed */
	uint32_t slabs_last; /* all of it is on one server: a death from loss */
	/* Were lost, and have replicas again: pages not written since are -EIO. */
	uint32_t slabs_holed;
};

/** rbx_volume_status_sized() - fills in so many bytes of the status; what this
 * version of the library has not got is zero. */
void rbx_volume_status_sized(struct rbx_volume *volume,
			     struct rbx_volume_status *status,
			     size_t size_bytes);

/** rbx_volume_status() - the same for this version of the struct. */
static inline void rbx_volume_status(struct rbx_volume *volume,
				     struct rbx_volume_status *status)
{
	rbx_volume_status_sized(volume, status, sizeof(*status));
}

/**
 * rbx_read(), rbx_write() - one request, waited for, and urgent (RBX_URGENT).
 *
 * Return 0, -EINVAL, or what the request ended with (struct rbx_request);
 * -EDEADLK in a callback. Block.
 */
int rbx_read(struct rbx_volume *volume, void *buf, size_t length,
	     uint64_t offset);
int rbx_write(struct rbx_volume *volume, const void *buf, size_t length,
	      uint64_t offset);

/**
 * rbx_readv(), rbx_writev() - the same, of memory in several places.
 * @iov: as of readv(2): 1 to RBX_SEGMENTS_MAX, together less than 4 GiB. Those of
 *	length 0 are skipped.
 *
 * It is one request, so it is not longer than what may be outstanding (requests_max).
 */
int rbx_readv(struct rbx_volume *volume, const struct iovec *iov, int count,
	      uint64_t offset);
int rbx_writev(struct rbx_volume *volume, const struct iovec *iov, int count,
	       uint64_t offset);

/* ---- Requests: many at once ------------------------------------------------
 *
 * A request is the caller's memory. RDMAbox borrows it and its buffer from
 * submit until completion; neither may be touched in between.
 *
 * Requests that are outstanding together have no order, as in verbs and NVMe.
 * A request submitted after another one has completed sees its effect. Of
 * overlapping outstanding writes each byte holds one or the other.
 */
enum rbx_op {
	RBX_READ,
	RBX_WRITE,
};

enum rbx_request_flags {
	RBX_FENCE = 1, /* starts after all earlier requests have completed that
			  go to the same peer */
	RBX_NO_MERGE = 2, /* gets a work request of its own */
	RBX_URGENT = 4, /* somebody waits for it: leaves before those to the
			   same peer that are not urgent, such as a page that
			   is read in before pages that are written out. A
			   fence it does not pass, and the others keep at
			   least one work request in 17. */
	RBX_NO_RESEND = 32, /* once it was posted it ends with its connection, and is
			       not sent again when that is restored: whether it
			       was carried out nobody knows. It is not merged.
			       Borrowed memory only: a volume refuses it. */
};

/* A stretch of our memory. */
struct rbx_segment {
	const void *addr; /* what is received or read is written there */
	uint32_t length_bytes;
	const struct rbx_region *region; /* that holds it; NULL: none */
};

/* Segments of one request: a MiB of pages. */
#define RBX_SEGMENTS_MAX 256

struct rbx_request {
	uint8_t op; /* enum rbx_op */
	uint8_t flags; /* enum rbx_request_flags */
	/*
	 * Out: 0; -EIO every replica is lost, or was lost and the page not
	 * written whole since, the data is not what was written, or this
	 * machine's device failed; -EFAULT buf is no memory
	 * of the program, or not as long: no replica is lost, and what was
	 * there before a write is, but for the bytes that could be read. Where
	 * the CPU copies a bad buf is a SIGSEGV as in memcpy(): checksums;
	 * buffers=staging, and short buffers with auto; a server on this host
	 * without an RDMA device; on the soft device a read of which a part is
	 * below 16 KiB; on verbs a write so short that it goes inline. To have
	 * these checked would double the time that they take.
	 * Without a volume: -EHOSTUNREACH, -ETIMEDOUT the peer is dead;
	 * -EREMOTEIO its device failed; -EACCES the server took the memory
	 * back. -ECANCELED the volume was closed.
	 */
	int32_t status;
	uint32_t length_bytes; /* at least 1; all requests of one submit together
				  at most requests_max fragments of
				  fragment_bytes. rbx_read() and rbx_write()
				  cut what is longer. */
	uint64_t offset; /* in the volume or in the borrowed memory, bytes */
	void *buf; /* NULL: segments */
	struct rbx_region *region; /* that holds buf; NULL: none */
	/*
	 * Called once at completion, from the thread that polls. May submit,
	 * must not block. The request is the caller's again: it may be freed or
	 * submitted again there. What it submits is plugged: it leaves together when
	 * the callbacks of this round are done. NULL: the request comes out
	 * of rbx_reap().
	 */
	void (*complete)(struct rbx_request *request);
	void *user;
	/*
	 * In place of buf: a list of memory, together length_bytes, in the order of the
	 * bytes in the volume; NULL: none. List and memory are borrowed until
	 * completion. Those of a write may overlap, and several requests may share a
	 * list. The request is cut where segments meet. On a volume, if they meet within
	 * a page of its checksums, or within a 64th of fragment_bytes that is written,
	 * the CPU copies these few bytes; up to 512 such places of one volume may be
	 * outstanding. What buffers=direct registers is each segment.
	 */
	const struct rbx_segment *segments;
	uint32_t segments_count; /* 1 to RBX_SEGMENTS_MAX */
	uint64_t reserved[6]; /* RDMAbox's own; zero before the first use */
};

/**
 * rbx_submit() - hands over requests on a volume.
 * @requests: borrows each until it completes.
 * @count: 1 to 1024.
 *
 * Never waits for a completion; registering a buffer, where `buffers` says so,
 * takes the time of a system call. All or nothing: returns 0, -EAGAIN where too
 * many requests are outstanding (submit again from a completion, or
 * rbx_wait_room()), -EINVAL for a request out of range or malformed, -EBUSY for one
 * that is outstanding, or twice in @requests, another -errno where buffers=direct
 * cannot register a buffer: then nothing was sent.
 */
int rbx_submit(struct rbx_volume *volume, struct rbx_request *const requests[],
	       unsigned int count);

/**
 * rbx_wait_room() - waits after an -EAGAIN until it is worth trying again.
 *
 * Returns 0 when requests have completed, or after a millisecond in which they
 * may have; the next submit says. -ETIMEDOUT where @timeout_ms, if not -1, is
 * over before.
 */
int rbx_wait_room(struct rbx_context *ctx, int timeout_ms);

/**
 * rbx_plug(), rbx_unplug() - holds back what this thread submits, so that it
 * leaves as one batch. Nested pairs count; the last unplug sends, and so does
 * every call that waits: rbx_read(), rbx_reap(), rbx_wait_room() and so on. An
 * unplug without a plug does nothing.
 */
void rbx_plug(struct rbx_context *ctx);
void rbx_unplug(struct rbx_context *ctx);

/* ---- Completion: by callback, by reaping, or from a loop of the program -----
 *
 * What the paper calls the handler of CQ events (figure 3) is there three times,
 * for three kinds of program:
 *	complete	of a request is called as soon as a completion is polled,
 *			on a poller's thread
 *	rbx_reap()	waits for completed requests, one or many
 *	pollers = 0	makes the program the poller: rbx_event_fd() in its event
 *			loop is readable at an event of a completion queue, and
 *			rbx_poll() calls `complete` on the thread that calls it
 * Who wants the completion queue itself has it in rdmabox/verbs.h.
 */

/**
 * rbx_reap() - takes completed requests that have no callback.
 * @done: receives at most @max of them.
 * @timeout_ms: 0 does not wait, -1 waits for ever.
 *
 * Returns how many, 0 after the timeout.
 */
int rbx_reap(struct rbx_context *ctx, struct rbx_request *done[],
	     unsigned int max, int timeout_ms);

/**
 * rbx_event_fd() - a descriptor for epoll: readable while rbx_reap() has
 * something, or, with pollers = 0, while rbx_poll() may have work.
 */
int rbx_event_fd(struct rbx_context *ctx);

/**
 * rbx_poll() - with pollers = 0: completes what has arrived, on this thread.
 *
 * Never blocks. Returns the number of work completions handled. -EBUSY where
 * the context has pollers of its own or another thread is polling.
 */
int rbx_poll(struct rbx_context *ctx);

/* ---- Regions: local memory registered once --------------------------------
 *
 * Not needed, but the cheapest way with a NIC: a request whose buffer lies in
 * a region is neither copied nor registered on the way.
 */

/**
 * rbx_region_register() - registers memory.
 *
 * Returns 0, -EINVAL, -ENOMEM where it cannot be pinned. Blocks. The memory
 * stays the caller's and must stay mapped until rbx_region_release().
 */
int rbx_region_register(struct rbx_context *ctx, void *addr, size_t length,
			struct rbx_region **region);

/** rbx_region_release() - no request that uses it may be outstanding. */
void rbx_region_release(struct rbx_region *region);

/* ---- Peers: one server's memory, without a volume -------------------------*/

/** rbx_peer_connect() - connects to one server. Errors as rbx_volume_open(). */
int rbx_peer_connect(struct rbx_context *ctx, struct rbx_peer **peer,
		     const char *server);

/**
 * rbx_peer_close() - all that was borrowed from it has been returned before.
 *
 * Returns 0, -EBUSY if it has not, -EDEADLK or -EINVAL as rbx_close(). Blocks.
 */
int rbx_peer_close(struct rbx_peer *peer);

/**
 * rbx_borrow() - borrows memory of a peer; at most the server's slab size.
 *
 * A server that runs short takes memory back after a time of grace. The program is not
 * asked before: its requests to that memory end with -EACCES, and rbx_return() is all
 * that is left to do with it. Before the server's memory is lent anew here, the old
 * loan is ended for good, and what is under way to it is waited for, but not longer than
 * peer_timeout_ms (-ETIMEDOUT). Plain verbs (verbs.h) are not seen here: a program that
 * uses them stops when a work request ends with a remote access error.
 *
 * Returns 0, -EINVAL, -ENOSPC, -EDQUOT, -EHOSTUNREACH, -ETIMEDOUT. Blocks.
 */
int rbx_borrow(struct rbx_peer *peer, struct rbx_remote **remote,
	       uint64_t size);

/** rbx_return() - waits for what is outstanding and gives it back; while the connection
 * is broken, until it is restored or the peer given up. If the server does not answer for
 * some peer_timeout_ms, the memory goes back when the peer is closed. Returns and blocks as
 * rbx_volume_close(). */
int rbx_return(struct rbx_remote *remote);

/** rbx_remote_submit() - as rbx_submit(), with offsets in borrowed memory. -EACCES: the
 * server took it back and has lent it anew; nothing was sent. */
int rbx_remote_submit(struct rbx_remote *remote,
		      struct rbx_request *const requests[], unsigned int count);

/* ---- Numbers ---------------------------------------------------------------
 *
 * The same names in the JSON of rdmabox-bench(1) and here.
 */
#define RBX_STATS(X)                                                          \
	X(requests, "requests completed")                                     \
	X(bytes, "bytes of requests completed")                               \
	X(errors, "requests completed with an error")                         \
	X(work_requests, "work requests posted")                              \
	X(doorbells, "posts, each a chain of work requests")                  \
	X(merged_requests, "requests that shared another's work request")     \
	X(completions, "work completions handled")                            \
	X(polls, "polls of a completion queue")                               \
	X(empty_polls, "polls that found nothing")                            \
	X(arms, "completion queues armed before a sleep")                     \
	X(wakeups, "sleeps of a poller that ended with an event")             \
	X(context_switches, "context switches of the pollers' threads")       \
	X(poller_cpu_ns, "CPU time of the pollers' threads, nanoseconds")     \
	X(window_waits, "times that work waited for the window")              \
	X(window_bytes, "bytes that may be in flight now; 0: no limit")       \
	X(window_clamps, "windows out of range that a policy asked for")      \
	X(inflight_bytes, "bytes in flight now")                              \
	X(inflight_bytes_max, "most bytes in flight")                         \
	X(staged_bytes, "bytes copied through staging memory")                \
	X(registrations, "memory registrations")                              \
	X(deregistrations, "memory registrations ended")                      \
	X(registration_failures, "buffers that could not be registered")      \
	X(retries, "fragments sent again")                                    \
	X(failovers, "reads that went on to another replica")                 \
	X(rebuilt_bytes, "bytes copied by rebuilds")                          \
	X(checksum_errors, "pages that were not what was written")            \
	X(checksum_repairs, "reads that wrote a bad copy anew")               \
	X(messages_sent, "messages sent to programs that serve")              \
	X(messages_received, "messages of theirs that a handler has had")

struct rbx_stats {
	size_t size_bytes; /* in: of this struct; out: of what was filled in */
	/* Latency of requests, from submit to the poll that found them done,
	 * within 4 %. What a callback submits counts from that poll. */
	uint64_t latency_p50_ns;
	uint64_t latency_p99_ns;
	uint64_t latency_p999_ns;
	uint64_t latency_max_ns;
#define RBX_STATS_FIELD(name, what) uint64_t name;
	RBX_STATS(RBX_STATS_FIELD) /* grows at the end */
#undef RBX_STATS_FIELD
};

/** rbx_stats_get() - the numbers since rbx_open() or rbx_stats_reset(). */
void rbx_stats_get(struct rbx_context *ctx, struct rbx_stats *stats);

/** rbx_stats_reset() - starts counting from zero; no request outstanding. */
void rbx_stats_reset(struct rbx_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
