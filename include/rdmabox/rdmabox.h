/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox.h - remote memory for programs.
 *
 * A program hands RDMAbox reads and writes of remote memory. RDMAbox merges
 * neighbours into one work request, chains the rest behind one doorbell, keeps
 * what is in flight inside a window, posts, polls and reaps. It does so over an
 * RDMA NIC or, if there is none, over a software device of its own.
 *
 *	struct rbx_context *ctx;
 *	struct rbx_volume *volume;
 *
 *	rbx_open(&ctx, NULL);
 *	rbx_volume_open(ctx, &volume, "127.0.0.1:7471", 1 << 30, NULL);
 *	rbx_write(volume, page, sizeof(page), 4096);
 *	rbx_read(volume, page, sizeof(page), 4096);
 *	rbx_volume_close(volume);
 *	rbx_close(ctx);
 *
 * Read this page from top to bottom: context, volume, requests, completion,
 * regions, peers, numbers. Beyond loopback a secret is needed: options.secret_file.
 * Other headers:
 *	endpoint.h	a connection between two programs, without a server
 *	message.h	messages to the program that serves
 *	tuning.h	what a device likes
 *	congestion.h	how much may be in flight
 *	integrity.h	what protects the bytes on the network
 *	verbs.h		plain verbs beside RDMAbox
 *	server.h	serving memory from a program
 *	pool.h		where the servers of a volume come from
 *
 * Four rules hold for all calls:
 * - A call returns 0, a count, or -errno. After a failure rbx_last_error() says
 *   in one line what failed, why, and how to mend it.
 * - Any thread may call, unless "Context" says otherwise. A handle must not be
 *   used while it is closed, or after. To close NULL does nothing.
 * - Callbacks (of completions, messages and events) run on threads of the
 *   library, which have to go on. A call that would wait there returns -EDEADLK
 *   and does nothing; each such call lists that error.
 * - After fork() a context and all that was opened with it belong to the parent,
 *   and the child opens a context of its own. In the child a call that would use
 *   the device, wait or close something returns -EINVAL, or does nothing if it
 *   returns nothing. The parent is not disturbed.
 *
 * The comment above each function has one form, from which the manual pages are
 * made; include/README.md tells it.
 */
#ifndef RDMABOX_H
#define RDMABOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdmabox/congestion.h>
#include <rdmabox/integrity.h>

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
 * rbx_last_error() - tells why the last failed call of this thread failed.
 *
 * Returns one line without a newline, or "" if nothing failed yet.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until the next call of this thread that fails.
 */
const char *rbx_last_error(void);

/* ---- Context: a device and how it is to be used ---------------------------
 *
 * Options are a struct; fill it with rbx_options_defaults() and change what
 * matters, by field or by text of the field's name ("window=1M").
 *
 * The first field of a struct that will grow is its size, as the program knows
 * it. So a program runs with a library of another version. Fields that the program's
 * struct lacks keep their defaults. Fields that the library does not know must be
 * zero, else the call returns -EINVAL. The functions that are `static inline` here
 * put the size in.
 */
#define RBX_POLLERS_PEER 0xffffffffu
#define RBX_POLLERS_QUEUE_PAIR 0xfffffffeu

struct rbx_options {
	size_t size_bytes; /* of this struct; rbx_options_defaults() sets it */
	/* The fabric:
	 *	auto		verbs if there is an RDMA device, else soft;
	 *			rbx_describe() tells which, and why
	 *	verbs		an RDMA NIC or Soft-RoCE
	 *	soft		the software device
	 *	soft:tcp	the same, and TCP even within one host
	 * A named fabric never falls back to another. Default: "auto". */
	char fabric[16];
	/* The device. With verbs a name such as "mlx5_0", or "mlx5_0:1" with a port.
	 * With soft only "registered", a device that wants memory registered, as most
	 * NICs do. With auto a named device means verbs, but "registered" means soft.
	 * Default: "" (the library chooses). */
	char device[64];
	/* With verbs the index of the GID, at most 255; -1 chooses. Default: -1. */
	int gid_index;
	/* How requests become work requests (paper, section IV-A):
	 *	single		one work request and one doorbell for each request
	 *	doorbell	chaining only
	 *	merge		merging on MR only
	 *	hybrid		both
	 * Default: "hybrid". */
	char mode[16];
	/* How the device gets at a buffer that lies in no region (paper, section IV-A):
	 *	staging	it is copied through registered memory (preMR)
	 *	direct	it is registered for its request (dynMR); if that fails,
	 *		so does rbx_submit()
	 *	auto	a short one is copied, a long one is registered. The tuning
	 *		file tells from which length on; if it does not, rbx_open()
	 *		measures that in less than 20 ms. A buffer that cannot be
	 *		registered is copied
	 * If one key covers all memory (soft; a NIC with on_demand_paging), direct and
	 * auto post buffers as they are. Default: "auto". */
	char buffers[16];
	/* What a poller does between completions (paper, section III-B):
	 *	busy		polls for ever
	 *	event		sleeps, and takes one completion for each event
	 *	event-batch:N	takes up to N for each event
	 *	hybrid		polls until it finds nothing, then sleeps
	 *	adaptive	polls on through gaps that are cheaper to spend polling
	 *			than sleeping; it learns which these are
	 *	adaptive:RETRY[:BATCH]	polls on through RETRY empty polls (algorithm 3;
	 *			the paper has 120), with at most BATCH completions each
	 *	shared:M	busy, with M pollers for all peers; it does not go with
	 *			another number of `pollers`
	 * rbx_polling_set() changes it later. Default: "adaptive". */
	char polling[32];
	/* With adaptive: how much of its time a poller may spend on polls that find
	 * nothing, 1 to 100 percent; 100 is no bound. Default: 100. */
	uint32_t poll_cpu_percent;
	/* How many bytes may be in flight on the device, all peers together
	 * (paper, section IV-A):
	 *	off	no limit
	 *	SIZE	that many, such as 1M; at least one fragment
	 *	aimd	grows step by step, and is halved when round trips get long
	 *	delay	follows the change of round trips
	 *	auto	finds the least that gives full throughput, and stays there
	 * Default: "auto". */
	char window[16];
	/* A policy of the program in place of `window`, see congestion.h; NULL is none.
	 * Its answers are clamped to one fragment at least and 64 MiB at most, and
	 * counted as window_clamps. Borrowed until rbx_close(). Default: NULL. */
	const struct rbx_congestion_ops *congestion;
	/* For measurements of pacing, with soft only. WORK_REQUESTS:NS makes a device on
	 * which a work request costs NS nanoseconds more for each one that is queued
	 * beyond WORK_REQUESTS. Default: "off". */
	char overload[16];
	/* As `window`, counted in work requests, at most 1048576; 0 is no limit.
	 * Default: 0. */
	uint32_t window_work_requests;
	/* Longer requests are split into fragments of this length: a power of two, 4096
	 * to 262144 bytes. The text key has the same name, "fragment_bytes=64K".
	 * Default: 131072. */
	uint32_t fragment_bytes;
	/* Queue pairs for each peer, 1 to 16; 0 takes what the tuning file says, else 1.
	 * Default: 0. */
	uint32_t queue_pairs;
	/* Threads that poll, each with a completion queue: 1 to 16 for all peers. 0: the
	 * program calls rbx_poll() itself, and no policy is followed. RBX_POLLERS_PEER
	 * ("peer") or RBX_POLLERS_QUEUE_PAIR ("queue_pair"): one for each, at most 64.
	 * Default: 1. */
	uint32_t pollers;
	/* Fragments of a volume, or of a piece of borrowed memory, that may be
	 * outstanding: 64 to 65536. Default: 4096. */
	uint32_t requests_max;
	/* Milliseconds, 100 to 3600000. A request to a peer that fell silent ends within
	 * this time; until then the library tries to resume the session. A peer that
	 * talks but carries no request out is tried on new connections first, and its
	 * requests end within twice this time. A request for data that no other server
	 * has ends within half of the server's lease, if that is longer: it may be this
	 * machine that is cut off. Default: 5000. */
	uint32_t peer_timeout_ms;
	/* The file that holds the secret shared with the servers: 16 to 4096 bytes, no
	 * rights for others. Default: "" (no secret). */
	char secret_file[256];
	/* 1: does without a secret even beyond loopback. Default: 0. */
	uint32_t insecure;
	/* The file that rdmabox-tune(1) wrote. "" is $XDG_CONFIG_HOME/rdmabox/tune.json or
	 * ~/.config/rdmabox/tune.json; "none" is no file. An option that was set goes
	 * before it. If the file cannot be read, the defaults apply, and
	 * rbx_describe() tells of it. Default: "". */
	char tune_file[256];
	/* 1, with verbs: one key covers all memory, and the NIC takes page faults instead
	 * of having memory pinned (implicit on-demand paging). Nothing is copied or
	 * registered, but a page that is not present costs much: packets are dropped and
	 * waited for. A device that cannot do it is refused (-ENOTSUP). Default: 0. */
	uint32_t on_demand_paging;
	/* With verbs the traffic class of the packets, 0 to 255: DSCP and ECN, from which
	 * a RoCE network makes its priority, and InfiniBand its service level. 0 leaves
	 * it to the route. Default: 0. */
	uint32_t traffic_class;
	/* The name that the servers have for the secret, if each client has a secret of its
	 * own: 1 to 31 characters of A-Z a-z 0-9 . _ -. Default: "" (it has no name). */
	char credential[32];
	/* Of enum rbx_integrity: what protects the bytes between this program and others. A
	 * server, and the other end of an endpoint, must have the same. As text: default, off,
	 * mac or tls. tls without a secret, or with verbs, is refused (-EINVAL). Default: 0. */
	uint32_t integrity;
};

/**
 * rbx_options_defaults_sized() - fills in the defaults of a struct of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_options_defaults_sized(struct rbx_options *options, size_t size_bytes);

/**
 * rbx_options_defaults() - fills in the defaults of this version of the struct.
 *
 * Context: any thread, callbacks too; never blocks.
 */
static inline void rbx_options_defaults(struct rbx_options *options)
{
	rbx_options_defaults_sized(options, sizeof(*options));
}

/**
 * rbx_options_set() - changes one option by text.
 * @key_value: the name of a field and its value, such as "window=1M"
 *
 * Returns 0, or:
 *	-EINVAL: there is no such option, or its value is out of range;
 *		rbx_last_error() lists what is allowed. Nothing was changed
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_options_set(struct rbx_options *options, const char *key_value);

/**
 * rbx_size_parse() - makes bytes of a size in text.
 * @text: a whole number, followed or not by K, M, G or T, or by KiB, MiB, GiB or TiB.
 *	All are powers of 1024, in either case: "64K", "1g", "2MiB"
 *
 * Options and the arguments of rdmabox(1) are written so.
 *
 * Returns 0, or:
 *	-EINVAL: the text is no size, or the size needs more than 64 bits
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_size_parse(const char *text, uint64_t *bytes);

/**
 * rbx_open() - opens a device.
 * @ctx: receives the context
 * @options: borrowed during the call; NULL takes the defaults
 *
 * Returns 0, or:
 *	-EINVAL: an option is unknown or out of range, the device has no such port or
 *		GID or fewer queue pairs, or the secret is no file, too short or too long
 *	-ENODEV: the fabric has no device here
 *	-ENETDOWN: with verbs, the port of the device is down
 *	-ENOTSUP: the device has no implicit on-demand paging
 *	-ENOMEM: memory cannot be had or pinned; rbx_last_error() says which limit to raise
 *	-ENOENT: there is no such secret file
 *	-EACCES: the secret file cannot be read, or others may read it
 *	-EMFILE: the process has no file descriptors left
 *	-EAGAIN: the process may not start another thread
 * Context: any thread; blocks while the device is opened.
 * Lifetime: until rbx_close().
 */
int rbx_open(struct rbx_context **ctx, const struct rbx_options *options);

/**
 * rbx_close() - closes a context whose volumes, peers and regions are closed.
 * @ctx: NULL: nothing is done, as by all functions that close something
 *
 * After an error the context is open as before.
 *
 * Returns 0, or:
 *	-EBUSY: something of the context is still open: a volume, peer, region, queue,
 *		listener, protection domain or queue pair of the program;
 *		rbx_last_error() says what
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that opened it
 * Context: any thread; blocks until the threads of the context have ended.
 */
int rbx_close(struct rbx_context *ctx);

/**
 * rbx_polling_set() - changes the polling policy of an open context.
 * @polling: as the option
 *
 * The pollers follow it when the call returns. Their number stays, so shared:M is
 * possible if there are M.
 *
 * Returns 0, or:
 *	-EINVAL: the text is no policy
 *	-EBUSY: the pollers of the context cannot follow the policy, or the program polls
 *		itself
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until callbacks that are under way have returned.
 * Paper: section III-B.
 */
int rbx_polling_set(struct rbx_context *ctx, const char *polling);

/**
 * rbx_describe() - writes the effective configuration as text.
 * @text: receives it, cut to @size_bytes with its NUL
 *
 * There is a line key=value for each option, and then what was taken:
 *	using		the fabric and the device, and why
 *	taken		the same in two words
 *	registering	which buffers are registered, and why
 *	tuning		the tuning file, why there is none, or a warning
 *
 * Returns how many bytes the whole text has without its NUL, as snprintf() does, or:
 *	-EINVAL: called in a child of the process that opened the context
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_describe(struct rbx_context *ctx, char *text, size_t size_bytes);

/* ---- Volume: a range of bytes on memory servers ---------------------------
 *
 * A volume is a linear range of bytes made of slabs that memory servers lend,
 * each slab on `replicas` different servers. A write is acknowledged when every
 * live replica has it. A read is served by one live replica, and goes to another
 * if that one fails. A lost copy is rebuilt on another server of the volume.
 * Bytes that were never written read as zeros. With two replicas or more no data is
 * lost if a server dies; the default is one. It belongs to the context
 * that opened it, and its memory goes back to the servers when it is closed.
 */
enum rbx_event_kind {
	RBX_EVENT_SERVER_DOWN, /* a server is dead */
	RBX_EVENT_REBUILD_STARTED, /* the copies it held are made anew */
	RBX_EVENT_REBUILD_DONE, /* all slabs have all their replicas again */
	RBX_EVENT_REBUILD_STUCK, /* no server can take the lost copies */
	RBX_EVENT_DATA_LOST, /* the last copy of a slab is lost */
	/* A server of the pool has joined the volume, or one of a named volume has returned. */
	RBX_EVENT_SERVER_ADDED,
	RBX_EVENT_SERVER_LEFT_OUT, /* a server of the pool could not join; it is tried again */
	/* The open of a named volume takes long: what it waits for, and how many slabs are left of
	 * it, as often as every 5 s. The volume cannot be used yet. */
	RBX_EVENT_OPENING,
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
	 * a server of a pool joins or cannot, and while an open takes long (enum
	 * rbx_event_kind), from threads of the library or the one that opens, one at a
	 * time. It must not block. Default: NULL. */
	void (*event)(struct rbx_volume *volume, const struct rbx_event *event,
		      void *user);
	void *user; /* passed to `event`. Default: NULL. */
	/* 1: opening borrows nothing. A slab has memory from its first write on, and
	 * until it is discarded; while it has none it reads as zeros. A first write ends
	 * with -ENOSPC if no server will lend memory, with -EIO if no server is left, and
	 * with -ETIMEDOUT if the servers that are left lend nothing for twice
	 * peer_timeout_ms. Default: 0. */
	uint32_t on_demand;
	/* Opens the named volume of this name (rdmabox/volumes.h), and not a new one: the size
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
};

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
 * are new. A server that was lost comes back in that way, too.
 *
 * Returns 0, or:
 *	-EINVAL: the size, the list of servers or an option is not allowed; a server is
 *		named twice; or the servers lend slabs of different lengths
 *	-E...: as rbx_pool_open()
 *	-ENOSPC: the servers cannot lend that much
 *	-EDQUOT: the quota of a server does not allow it
 *	-ENOTCONN: a server was lost meanwhile
 *	-ENOENT: with a name: no server has a volume of this name
 *	-EBUSY: with a name: another program has it open; rbx_last_error() names it
 *	-EEXIST: with a name: servers have different volumes of it, see rbx_volume_remove()
 *	-E...: as rbx_peer_connect()
 * Context: any thread; blocks until all memory is borrowed.
 * Lifetime: until rbx_volume_close().
 */
int rbx_volume_open(struct rbx_context *ctx, struct rbx_volume **volume,
		    const char *servers, uint64_t size,
		    const struct rbx_volume_options *options);

/**
 * rbx_volume_close() - waits for what is outstanding, and gives all memory back.
 * @volume: NULL: nothing is done
 *
 * A first write that still waits for memory of a server ends with -ECANCELED.
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
 * Returns the bytes that rbx_volume_open() was asked for.
 * Context: any thread, callbacks too; never blocks.
 */
uint64_t rbx_volume_size(const struct rbx_volume *volume);

/**
 * rbx_volume_add_server() - lets a volume use one more server from now on.
 * @server: "host:port"
 *
 * Slabs that lack a replica are rebuilt on it. The call returns before that is done;
 * RBX_EVENT_REBUILD_DONE tells of the end. A server that was lost and runs again does
 * not come back by itself: it is added like a new one. A named volume with replicas takes those
 * back by itself that have kept their memory.
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

/* ---- Requests: many at once ------------------------------------------------
 *
 * A request is the caller's memory. RDMAbox borrows it and its buffer from
 * submit until completion; neither may be touched in between. So a request that
 * is outstanding cannot be submitted again.
 *
 * Requests that are outstanding together have no order, as in verbs and NVMe.
 * A request submitted after another one has completed sees its effect. Of
 * overlapping outstanding writes each byte holds one or the other.
 */
enum rbx_op {
	RBX_READ, /* from remote memory into the buffer */
	RBX_WRITE, /* from the buffer into remote memory */
};

enum rbx_request_flags {
	/* It starts after all earlier requests have completed that go to the same
	 * peer. */
	RBX_FENCE = 1,
	/* It gets a work request of its own. */
	RBX_NO_MERGE = 2,
	/* Somebody waits for it: it leaves before requests to the same peer that are not
	 * urgent, such as a page that is read in before pages that are written out. It
	 * does not pass a fence, and the others keep at least one work request in 17. */
	RBX_URGENT = 4,
	/* Once it was posted it ends with its connection, and is not sent again when the
	 * session is resumed. Nobody knows then whether it was carried out. It is not
	 * merged. For borrowed memory only: a volume refuses it. */
	RBX_NO_RESEND = 32,
};

/* A stretch of our memory. */
struct rbx_segment {
	const void *addr; /* what is received or read is written there */
	uint32_t length_bytes; /* at least 1 */
	const struct rbx_region *region; /* that holds it; NULL: none */
};

/* Segments of one request: a MiB of pages. */
#define RBX_SEGMENTS_MAX 256

struct rbx_request {
	uint8_t op; /* enum rbx_op */
	uint8_t flags; /* of enum rbx_request_flags */
	/*
	 * Out: how it ended.
	 *	0	it is done
	 *	-EIO	every replica is lost, or was lost and the page has not been
	 *		written whole since; the data is not what was written; or the
	 *		device of this machine failed
	 *	-EFAULT	the buffer is no memory of the program, or not as long. No replica
	 *		is lost. A failed write may have changed the bytes that could be
	 *		read; the others keep their contents
	 *	-ENOSPC	first write with on_demand: no server will lend memory
	 *	-ETIMEDOUT	first write with on_demand: the servers lend nothing for
	 *		twice peer_timeout_ms
	 *	-ECANCELED	the volume was closed
	 * Of borrowed memory, without a volume, also:
	 *	-EHOSTUNREACH	the peer is dead
	 *	-ETIMEDOUT	the peer is dead
	 *	-EREMOTEIO	the device of the peer failed
	 *	-EACCES	the server took the memory back
	 * If the CPU copies, a bad buffer is a SIGSEGV, as in memcpy(): with checksums;
	 * with buffers=staging, and short buffers with auto; with a server on this host
	 * without an RDMA device; on the soft device for a read of which a part is below
	 * 16 KiB; on verbs for a write so short that it goes inline. A check would double
	 * the time that these take.
	 */
	int32_t status;
	/* At least 1. All requests of one submit are together at most requests_max
	 * fragments of fragment_bytes. */
	uint32_t length_bytes;
	uint64_t offset; /* in the volume or in the borrowed memory, bytes */
	void *buf; /* where the data is, or goes; NULL: in segments */
	struct rbx_region *region; /* that holds buf; NULL: none */
	/*
	 * Called once at completion, from the thread that polls. It may submit, and must
	 * not block. The request is the caller's again: it may be freed or submitted
	 * again there. Requests that it submits are plugged: they leave together after the
	 * last callback of this poll. NULL: the request comes out of rbx_reap().
	 */
	void (*complete)(struct rbx_request *request);
	void *user; /* the caller's */
	/*
	 * In place of buf: a list of memory, together length_bytes, in the order of the
	 * bytes in the volume; NULL: none. List and memory are borrowed until
	 * completion. The list is only read, so several requests may share one. Segments
	 * of a write may overlap.
	 *
	 * The request is cut where segments meet, and its pieces are merged again on
	 * their way unless RBX_NO_MERGE forbids it. On a volume some bytes stay together:
	 * the 4 KiB page of a checksum, and 1/64 of fragment_bytes of what is written. If
	 * segments meet within such a place, the CPU copies it through memory of the
	 * volume; up to 512 such places of one volume may be outstanding. If buffers are
	 * registered, each segment is by itself, and one call has at most 2048 of them.
	 */
	const struct rbx_segment *segments;
	uint32_t segments_count; /* 1 to RBX_SEGMENTS_MAX */
	uint64_t reserved[6]; /* RDMAbox's own; zero before the first use */
};

/**
 * rbx_submit() - hands over requests on a volume.
 * @requests: borrows each until it completes
 * @count: 1 to 1024
 *
 * All or nothing: after an error nothing was sent, and all requests are the caller's.
 * The call never waits for a completion. If a buffer has to be registered for its
 * request (the option buffers), that takes the time of a system call.
 *
 * Returns 0, or:
 *	-EAGAIN: too many requests are outstanding: submit again from a completion, or
 *		after rbx_wait_room()
 *	-EINVAL: a request is out of range or malformed, or all together are more than may
 *		be outstanding; rbx_last_error() says what is wrong
 *	-EBUSY: a request is outstanding already, or twice in @requests
 *	-EOPNOTSUPP: a region of a request is a dmabuf
 *	-ENOMEM: with buffers=direct: a buffer cannot be pinned
 *	-EFAULT: with buffers=direct: a buffer is no memory of the program
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_submit(struct rbx_volume *volume, struct rbx_request *const requests[],
	       unsigned int count);

/**
 * rbx_wait_room() - waits after an -EAGAIN until it is worth trying again.
 * @timeout_ms: at most this long, and never longer than 1 ms; -1: 1 ms
 *
 * After 0 submit again; that may still return -EAGAIN.
 *
 * Returns 0 after a completion, or after 1 ms, or:
 *	-ETIMEDOUT: @timeout_ms is 0 or 1, and nothing completed
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that opened the context
 * Context: any thread; blocks for 1 ms at most.
 */
int rbx_wait_room(struct rbx_context *ctx, int timeout_ms);

/**
 * rbx_plug(), rbx_unplug() - hold back what this thread submits, and let it leave as one batch.
 *
 * Nested pairs count. The last unplug sends, and so does every call that waits:
 * rbx_read(), rbx_reap(), rbx_wait_room() and so on. An unplug without a plug does
 * nothing.
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_plug(struct rbx_context *ctx);
void rbx_unplug(struct rbx_context *ctx);

/* ---- Completion: by callback, by reaping, or from a loop of the program -----
 *
 * The paper has a handler of CQ events (figure 3). RDMAbox has three, for three
 * kinds of program:
 *	complete	of a request is called as soon as a completion is polled,
 *			on the thread of a poller
 *	rbx_reap()	waits for completed requests, one or many
 *	pollers = 0	makes the program the poller: rbx_event_fd() is readable in
 *			its event loop after an event of a completion queue, and
 *			rbx_poll() calls `complete` on the thread that calls it
 * A program that wants a completion queue of its own has it in rdmabox/verbs.h.
 */

/**
 * rbx_reap() - takes completed requests that have no callback.
 * @done: receives at most @max of them
 * @timeout_ms: waits this long for the first; 0: not at all, -1: for ever
 *
 * The requests of all threads of a context come out of one list: a thread may get those
 * of another.
 *
 * Returns how many requests it took, 0 after the timeout, or:
 *	-EINVAL: an argument is NULL, or @max is 0
 *	-EDEADLK: called in a callback, with a timeout that is not 0
 * Context: any thread, callbacks too if @timeout_ms is 0; blocks for @timeout_ms at most.
 */
int rbx_reap(struct rbx_context *ctx, struct rbx_request *done[],
	     unsigned int max, int timeout_ms);

/**
 * rbx_event_fd() - gives a descriptor for epoll(7) or poll(2).
 *
 * It is readable while rbx_reap() has something or, with pollers = 0, while rbx_poll()
 * may have work. It must not be read or closed.
 *
 * Returns the descriptor; never fails.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_close().
 */
int rbx_event_fd(struct rbx_context *ctx);

/**
 * rbx_poll() - completes on this thread what has arrived, with pollers = 0.
 *
 * Returns the number of work completions handled, or:
 *	-EBUSY: the context has pollers of its own, or another thread is polling
 *	-EINVAL: called in a child of the process that opened the context
 * Context: any thread, one at a time; never blocks.
 */
int rbx_poll(struct rbx_context *ctx);

/* ---- Regions: local memory registered once --------------------------------
 *
 * Not needed, but the cheapest way with a NIC: a request whose buffer lies in
 * a region is neither copied nor registered on the way.
 */

/**
 * rbx_region_register() - registers memory.
 * @addr: borrowed until rbx_region_release(); must stay mapped until then
 * @length: bytes, at least 1
 * @region: receives the region
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the range is empty or wraps around
 *	-ENOMEM: the memory cannot be pinned; rbx_last_error() says which limit to raise
 *	-EFAULT: with verbs: not all of it is mapped readable and writable
 *	-ENOSPC: all keys of the soft device are in use
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_region_release().
 */
int rbx_region_register(struct rbx_context *ctx, void *addr, size_t length,
			struct rbx_region **region);

/**
 * rbx_region_release() - ends the registration of memory.
 * @region: no request that uses it may be outstanding. NULL: nothing is done
 *
 * The memory stays the caller's.
 *
 * Context: any thread, callbacks too; blocks for a system call.
 */
void rbx_region_release(struct rbx_region *region);

/* ---- Peers: one server's memory, without a volume -------------------------*/

/**
 * rbx_peer_connect() - connects to one memory server.
 * @peer: receives the peer
 * @server: "host:port"
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the address is no "host:port"
 *	-EINVAL, -EADDRNOTAVAIL: the name of the server cannot be resolved
 *	-EHOSTUNREACH: a server cannot be reached, or nobody listens there
 *	-ENETUNREACH: there is no way to the network of a server
 *	-ETIMEDOUT: a server does not answer in time
 *	-ENODEV: with verbs: the address is not reached through an RDMA device
 *	-EXDEV: with verbs: the address is reached through another device than the open one
 *	-EPERM: the server is another machine, and there is no secret (the options
 *		secret_file and insecure)
 *	-EACCES: one side refuses the secret of the other
 *	-EBUSY: the server has no room for another client
 *	-EPROTO: what answers is no RDMAbox server
 *	-EPROTONOSUPPORT: the server speaks another version of the protocol
 *	-EREMOTEIO: the server failed; its log tells why
 *	-ENOSPC: the context has as many peers, or queue pairs, as it can have
 *	-ENOMEM: memory or the room of the device ran out
 *	-EMFILE: the process has no file descriptors left
 *	-EAGAIN: the process may not start another thread
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the server has answered.
 * Lifetime: until rbx_peer_close().
 */
int rbx_peer_connect(struct rbx_context *ctx, struct rbx_peer **peer,
		     const char *server);

/**
 * rbx_peer_close() - ends the connection to a server.
 * @peer: NULL: nothing is done
 *
 * All that was borrowed from it has to be returned before.
 *
 * Returns 0, or:
 *	-EBUSY: borrowed memory has not been returned
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that opened it
 * Context: any thread; blocks until the server has taken leave.
 */
int rbx_peer_close(struct rbx_peer *peer);

/**
 * rbx_borrow() - borrows memory of a peer.
 * @remote: receives the memory
 * @size: bytes, 1 to the slab size of the server
 *
 * The memory reads as zeros until it is written.
 *
 * A server that runs short takes memory back after a time of grace. The program is not
 * asked before: its requests to that memory end with -EACCES, and rbx_return() is all
 * that is left to do with it. If the server then lends the same memory anew, this call
 * ends the old loan first, and waits for requests to it, but not longer than
 * peer_timeout_ms. Plain verbs (verbs.h) are not seen here: a program that uses them
 * stops when a work request ends with a remote access error.
 *
 * Returns 0, or:
 *	-EINVAL: the size is 0, or more than a slab
 *	-ENOSPC: the server has no memory left, or is about to stop
 *	-EDQUOT: the quota of the server does not allow it
 *	-ENOTCONN: the peer is not connected now, or is dead
 *	-ETIMEDOUT: the server does not answer, cannot lend its free memory yet, or
 *		requests to the old loan do not end
 *	-EPROTO: the server lends a slab that cannot be
 *	-EREMOTEIO: the server failed; its log tells why
 *	-ENOMEM: memory of this machine ran out
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the server has answered.
 * Lifetime: until rbx_return(), or until the server takes the memory back.
 */
int rbx_borrow(struct rbx_peer *peer, struct rbx_remote **remote,
	       uint64_t size);

/**
 * rbx_return() - waits for what is outstanding, and gives borrowed memory back.
 * @remote: NULL: nothing is done
 *
 * While the connection is broken it waits until the session is resumed or the peer is
 * dead. If the server does not answer for some peer_timeout_ms, the memory goes back when
 * the peer is closed.
 *
 * Returns 0, or:
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that borrowed it
 * Context: any thread; blocks until the server has the memory again.
 */
int rbx_return(struct rbx_remote *remote);

/**
 * rbx_remote_submit() - hands over requests on borrowed memory.
 * @requests: borrows each until it completes; their offsets are in the borrowed memory
 * @count: 1 to 1024
 *
 * It works as rbx_submit(). There is one copy of the data: if the peer dies, requests
 * end with -EHOSTUNREACH or -ETIMEDOUT within peer_timeout_ms. Overlapping writes that
 * are outstanding together are not ordered.
 *
 * Returns 0, or:
 *	-EACCES: the server took the memory back and has lent it anew
 *	-E...: as rbx_submit()
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_remote_submit(struct rbx_remote *remote,
		      struct rbx_request *const requests[], unsigned int count);

/* ---- Numbers ---------------------------------------------------------------
 *
 * The numbers of a context are in the struct below, and under the same names in the
 * JSON of rdmabox-bench(1). Those of a server (server.h) also go to Prometheus;
 * docs/operating.md has the names there.
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
	size_t size_bytes; /* of what was filled in; the rest is zero */
	/* Median latency of requests, in nanoseconds from submit to the poll that found
	 * them done, within 4 %. What a callback submits counts from that poll. */
	uint64_t latency_p50_ns;
	uint64_t latency_p99_ns; /* 99 of 100 requests were as quick, or quicker */
	uint64_t latency_p999_ns; /* 999 of 1000 */
	uint64_t latency_max_ns; /* the slowest */
#define RBX_STATS_FIELD(name, what) uint64_t name;
	RBX_STATS(RBX_STATS_FIELD) /* grows at the end */
#undef RBX_STATS_FIELD
};

/**
 * rbx_stats_get_sized() - fills in statistics of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * What this version of the library does not know is zero. In a child of the process
 * that opened the context all of it is.
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_stats_get_sized(struct rbx_context *ctx, struct rbx_stats *stats,
			 size_t size_bytes);

/**
 * rbx_stats_get() - tells the numbers since rbx_open() or rbx_stats_reset().
 *
 * It fills in this version of the struct, as rbx_stats_get_sized().
 *
 * Context: any thread, callbacks too; never blocks.
 */
static inline void rbx_stats_get(struct rbx_context *ctx,
				 struct rbx_stats *stats)
{
	rbx_stats_get_sized(ctx, stats, sizeof(*stats));
}

/**
 * rbx_stats_reset() - starts counting from zero.
 *
 * No request may be outstanding.
 *
 * Context: any thread; never blocks.
 */
void rbx_stats_reset(struct rbx_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
