/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages between two programs over any transport: how long one takes, and how many there
 * are in a second.
 *
 *	PROGRAM --serve HOST:PORT [--fabric NAME]
 *	PROGRAM --connect HOST:PORT [--fabric NAME] [--what latency|rate] [--bytes N]
 *	        [--chain N] [--runtime S]
 *
 * latency: one message at a time, which the server sends back; half of the round trip, as in
 * ucx_perftest. rate: chains of messages, of which only the last completes, with TALK_CHAINS
 * of them under way; the server posts receives again. Both ends poll without a pause. Prints
 * JSON: lat_us, or messages_per_s.
 *
 * The server is not told the options: the client sends them in its private data.
 */
#ifndef TALKING_H
#define TALKING_H

#include <stdbool.h>
#include <stdint.h>

#define TALK_BYTES_MAX 4096u
#define TALK_DEPTH 256u
#define TALK_CHAIN_MAX 128u
#define TALK_CHAINS 2u	/* with TALK_CHAIN_MAX they fill the depth */
#define TALK_BATCH 64u	/* completions of a poll, at most */

/* From the connecting side to the listening one. */
struct talk_wish {
	uint32_t bytes;
	uint32_t answers;	/* 1: each message is sent back */
};

struct talk_options {
	const char *serve, *connect;	/* an address; one of them */
	const char *fabric;
	bool is_latency;
	uint32_t bytes, chain;
	double runtime_s;
};

/* A connection for messages. A failure ends the program. */
struct talk_way {
	void *end;
	/* Sends messages, of which only the last completes, and none unless is_told. */
	void (*send_chain)(void *end, uint32_t count, bool is_told);
	/* How many have completed, at least one; 0: the connection is over. */
	uint32_t (*poll)(void *end);
	/* Posts the receives again that the last poll has completed. */
	void (*receive_again)(void *end);
};

/* Returns 0, or the program's exit code after a message. */
int talk_options_parse(int argc, char **argv, struct talk_options *options);

/* The listening side, until the connection is over. */
void talk_serve(const struct talk_way *way, const struct talk_wish *wish);

/* The connecting side; prints the result. -errno: the connection has failed. */
int talk_measure(const struct talk_way *way, const struct talk_options *options);

#endif
