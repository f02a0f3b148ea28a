/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a peer program: one transport behind eight functions.
 *
 * main.c reads the command line and load.c makes the load. Both are the same in every peer
 * program, so two peers differ only by their transport. verbs_peer.c, libfabric_peer.c,
 * ucx_peer.c and uct_peer.c each define the functions below, and exactly one of them is
 * linked into a program.
 *
 * A program serves or connects. The server owns the memory and spins. The client is one
 * thread that posts requests, each named by its slot, and polls. Nothing is reconnected or
 * retried: a broken connection ends the run with errors, because a benchmark that hides one
 * measures something else.
 */
#ifndef PEER_H
#define PEER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Requests a client keeps outstanding at most; bounds every per-slot array. */
#define PEER_DEPTH_MAX 1024

/*
 * No progress for this long means that the other side is dead. It is generous: it only bounds
 * a hang, and never decides a figure.
 */
#define PEER_STALL_LIMIT_NS (5 * 1000000000ull)

/* A sleep for completions ends after this long, to look at the stall limit. */
#define PEER_WAIT_LIMIT_MS 100

/* What the transport of this program can do. */
struct peer_traits {
	const char *fabrics[3];	/* what it runs on, the default first; ends with NULL */
	uint32_t chain_max;	/* posts that can share a doorbell; 1: it cannot chain */
};

extern const struct peer_traits peer_traits;

struct peer_options {
	bool serve;
	const char *fabric;	/* one of peer_traits.fabrics */
	char host[64];
	char port[8];
	uint64_t memory_bytes;	/* serve: memory lent to the client */
	bool op_write;
	bool pattern_random;
	uint32_t block_bytes;
	uint32_t depth;
	double runtime_s;
	uint64_t volume_bytes;	/* connect: the part of the memory that is used */
	uint32_t chain;		/* posts that share a doorbell, at most */
	bool wait_event;	/* sleeps for completions instead of polling for them */
	bool verify;
	const char *json;	/* file name, "-" for stdout, NULL for none */
};

/* One completed request. */
struct peer_done {
	uint32_t slot;
	int status;		/* 0 or -errno */
};

struct peer;

/* Set by SIGTERM and SIGINT; a server checks it and returns. */
extern volatile sig_atomic_t peer_stop;

/* Monotonic time. */
uint64_t peer_now_ns(void);

/* Prints the line that tells a script that the server is ready. */
void peer_print_ready(const char *host, unsigned int port);

/* Name and version of the transport, such as "libfabric-tcp 1.17". */
void peer_fabric_name(const struct peer_options *options, char *name, size_t len);

/* Lends memory to one client after another until peer_stop. 0 or -errno. */
int peer_serve(const struct peer_options *options);

/* Returns a connected peer, which the caller disconnects. 0 or -errno. */
int peer_connect(const struct peer_options *options, struct peer **peer);

/*
 * Registers the memory with all buffers of the load, before the first request; borrowed until
 * the disconnect. Returns 0 or -errno.
 */
int peer_register(struct peer *peer, void *memory, size_t size_bytes);

/*
 * Starts one request of block_bytes; borrows @buf until its completion. The
 * completion means that the data is in its place on both sides.
 * Returns 0, -EAGAIN (poll, then post again) or another -errno.
 */
int peer_post(struct peer *peer, uint32_t slot, bool write, void *buf, uint64_t offset_bytes);

/*
 * Ends a series of posts: nothing that was posted may be held back in the peer. Returns 0 or
 * -errno.
 */
int peer_post_end(struct peer *peer);

/*
 * Makes progress, fills @done and returns how many requests completed, or
 * -errno. @done has room for all that can be outstanding, so that a completion
 * never waits for a later poll.
 */
int peer_poll(struct peer *peer, struct peer_done done[PEER_DEPTH_MAX]);

/*
 * Sleeps until there may be a completion, after a poll that found none. A completion since
 * that poll ends the sleep at once. Returns false when PEER_WAIT_LIMIT_MS have passed. Called
 * only with options->wait_event.
 */
bool peer_wait(struct peer *peer);

void peer_disconnect(struct peer *peer);

#endif
