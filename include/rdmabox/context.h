/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.h - a device, and how it is to be used.
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
#ifndef RDMABOX_CONTEXT_H
#define RDMABOX_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <rdmabox/congestion.h>
#include <rdmabox/integrity.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context; /* a device, its configuration and its numbers */

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
	 *	cached	it is registered when it is first used, and stays registered for
	 *		later requests, see `region_cache_bytes`. One below 16 KiB is
	 *		copied. What cannot be kept is treated as by auto
	 *	auto	a short one is copied, a long one is registered. The tuning
	 *		file tells from which length on; if it does not, rbx_open()
	 *		measures that in less than 20 ms. A buffer that cannot be
	 *		registered is copied
	 * If one key covers all memory (soft; a NIC with on_demand_paging), direct, cached
	 * and auto post buffers as they are. Default: "auto". */
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
	/* Called for each server that does not answer, if rbx_volume_list(),
	 * rbx_volume_members_list(), rbx_volume_grow(), rbx_volume_rename() or
	 * rbx_volume_remove() goes on without it: its address, and why. By the thread of that
	 * call, which both texts are valid for. Default: NULL. */
	void (*server_away)(const char *server, const char *why, void *user);
	void *server_away_user; /* passed to `server_away`. Default: NULL. */
	/* With buffers=cached: how many bytes may be registered at once, at least 4096. If the
	 * system pins less (RLIMIT_MEMLOCK), so does the cache. Default: 1 GiB. */
	uint64_t region_cache_bytes;
	/* With buffers=cached: how many regions there may be, 1 to 16384. Default: 4096. */
	uint32_t region_cache_regions;
	/* With buffers=cached: which regions leave if there is no room, one of lru, mre, gdsf,
	 * s3fifo and sieve; or auto, which follows the one that costs least. Default: "auto".
	 * Paper: section 5. */
	char region_policy[16];
	/* With buffers=cached: what tells that memory of the program is unmapped or replaced:
	 *	userfaultfd	the kernel
	 *	none		only rbx_memory_changed(); nothing is kept
	 *	auto		userfaultfd if the kernel allows it, else none
	 * Default: "auto". */
	char memory_monitor[16];
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

#ifdef __cplusplus
}
#endif

#endif
