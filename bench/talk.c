/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * talk.c - messages over an endpoint: how long one is on its way, and how many there
 * are in a second.
 *
 *	talk --serve HOST:PORT --fabric soft:tcp
 *	talk --connect HOST:PORT --fabric soft:tcp --what latency|rate [--bytes N]
 *	     [--chain N] [--runtime S]
 *
 * latency: one message at a time, which the server sends back; half of the way there
 * and back, as ucx_perftest has it. rate: chains of messages, of which the last alone
 * completes, with RATE_CHAINS of them under way; the server posts receives anew. Both
 * ends poll without a pause. Prints JSON: p50_us, or messages_per_s.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/histogram.h"
#include <rdmabox/endpoint.h>
#include <rdmabox/rdmabox.h>

#define BYTES_MAX 4096u
#define DEPTH 256u
#define CHAIN_MAX 128u
#define RATE_CHAINS 2u /* with CHAIN_MAX they fill the depth */
#define BATCH 64u
#define WARM_NS 300000000u

struct talk {
	struct rbx_context *ctx;
	struct rbx_queue *queue;
	struct rbx_region *region;
	struct rbx_endpoint *endpoint;
	char *memory; /* what is sent, then DEPTH receives */
	uint32_t bytes, chain;
	double runtime_s;
};

/* From who connects to who listens. */
struct wish {
	uint32_t bytes;
	uint32_t answers; /* 1: each message is sent back */
};

static void need(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "talk: %s: %s\n", what, rbx_last_error());
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void open_all(struct talk *talk, const char *fabric)
{
	struct rbx_options options;
	char text[64];

	rbx_options_defaults(&options);
	snprintf(text, sizeof(text), "fabric=%s", fabric);
	need(rbx_options_set(&options, text), "fabric");
	need(rbx_open(&talk->ctx, &options), "no device");
	need(rbx_queue_create(talk->ctx, 2 * DEPTH, &talk->queue), "no queue");
	talk->memory = calloc(DEPTH + 1, BYTES_MAX);
	need(!talk->memory, "no memory");
	need(rbx_region_register(talk->ctx, talk->memory,
				 (DEPTH + 1) * (size_t)BYTES_MAX, &talk->region),
	     "no region");
}

static struct rbx_endpoint_options endpoint_options(const struct talk *talk)
{
	return (struct rbx_endpoint_options){
		.size_bytes = sizeof(struct rbx_endpoint_options),
		.queue = talk->queue,
		.send_depth = DEPTH,
		.receive_depth = DEPTH,
		.works_when_polled = 1,
	};
}

static struct rbx_segment slot(const struct talk *talk, uint32_t index)
{
	return (struct rbx_segment){ talk->memory + (size_t)index * BYTES_MAX,
				     talk->bytes, talk->region };
}

/* Posts receives for the slots that the completions name, or for all of them. */
static void receive(const struct talk *talk,
		    const struct rbx_completion *completions, uint32_t count)
{
	struct rbx_segment segments[DEPTH];
	struct rbx_receive receives[DEPTH];

	for (uint32_t i = 0; i < count; i++) {
		uintptr_t index = completions ? (uintptr_t)completions[i].user :
						i + 1;

		segments[i] = slot(talk, (uint32_t)index);
		receives[i] = (struct rbx_receive){ &segments[i], 1, (void *)index };
	}
	need(rbx_endpoint_receive(talk->endpoint, receives, count),
	     "cannot receive");
}

/* Messages, of which the last alone completes; all of them if is_told. */
static void send_chain(const struct talk *talk, uint32_t count, bool is_told)
{
	struct rbx_operation chain[CHAIN_MAX];
	const struct rbx_segment segment = slot(talk, 0);

	for (uint32_t i = 0; i < count; i++)
		chain[i] = (struct rbx_operation){
			.kind = RBX_OPERATION_SEND,
			.flags = is_told && i + 1 == count ? 0 :
							     RBX_OPERATION_SILENT,
			.segments = &segment,
			.segments_count = 1,
		};
	need(rbx_endpoint_post(talk->endpoint, chain, count), "cannot send");
}

/* At least one; 0: the connection is over. */
static uint32_t poll_some(const struct talk *talk,
			  struct rbx_completion *completions)
{
	int count;

	do {
		count = rbx_queue_poll(talk->queue, completions, BATCH, 0);
		need(count < 0, "cannot poll");
	} while (count == 0);
	for (int i = 0; i < count; i++)
		if (completions[i].status)
			return 0;
	return (uint32_t)count;
}

static void serve(struct talk *talk, const char *address)
{
	struct rbx_completion completions[BATCH];
	const struct rbx_endpoint_options options = endpoint_options(talk);
	struct rbx_endpoint_listener *listener;
	struct rbx_endpoint_request *request;
	struct wish wish;
	size_t length;
	uint32_t count;

	need(rbx_endpoint_listen(talk->ctx, address, &listener), "cannot listen");
	printf("ready %s\n", rbx_endpoint_listener_address(listener));
	fflush(stdout);
	need(rbx_endpoint_next_request(listener, -1, &request), "nobody asks");
	memcpy(&wish, rbx_endpoint_request_data(request, &length), sizeof(wish));
	need(length < sizeof(wish) || wish.bytes > BYTES_MAX, "no wish");
	talk->bytes = wish.bytes;
	need(rbx_endpoint_accept(request, &options, NULL, &talk->endpoint),
	     "cannot accept");
	receive(talk, NULL, DEPTH);
	while ((count = poll_some(talk, completions)) != 0) {
		receive(talk, completions, count);
		if (wish.answers)
			send_chain(talk, count, false);
	}
}

static void latency(struct talk *talk)
{
	static struct rbx_histogram histogram;
	struct rbx_completion completion[BATCH];
	uint64_t begin_ns = now_ns(), sent_ns = begin_ns, back_ns;
	uint64_t until_ns =
		begin_ns + WARM_NS + (uint64_t)(talk->runtime_s * 1e9);

	do {
		send_chain(talk, 1, false);
		need(poll_some(talk, completion) != 1, "no answer");
		receive(talk, completion, 1);
		back_ns = now_ns();
		if (sent_ns - begin_ns > WARM_NS)
			rbx_histogram_add(&histogram, (back_ns - sent_ns) / 2);
		sent_ns = back_ns;
	} while (back_ns < until_ns);
	printf("{\"lat_us\": {\"p50\": %.3f, \"p99\": %.3f}}\n",
	       (double)rbx_histogram_quantile(&histogram, 500) / 1e3,
	       (double)rbx_histogram_quantile(&histogram, 990) / 1e3);
}

static void rate(struct talk *talk)
{
	struct rbx_completion completions[BATCH];
	uint64_t begin_ns = now_ns(), at_ns = begin_ns, counted_from_ns = 0;
	uint64_t until_ns =
		begin_ns + WARM_NS + (uint64_t)(talk->runtime_s * 1e9);
	uint64_t messages = 0;

	for (uint32_t i = 0; i < RATE_CHAINS; i++)
		send_chain(talk, talk->chain, true);
	while (at_ns < until_ns) {
		uint32_t count = poll_some(talk, completions);

		need(!count, "the connection is over");
		at_ns = now_ns();
		if (counted_from_ns)
			messages += (uint64_t)count * talk->chain;
		else if (at_ns - begin_ns > WARM_NS)
			counted_from_ns = at_ns;
		while (count--)
			send_chain(talk, talk->chain, true);
	}
	printf("{\"messages_per_s\": %.0f}\n",
	       (double)messages * 1e9 / (double)(at_ns - counted_from_ns));
}

static void ask(struct talk *talk, const char *address, bool is_latency)
{
	struct rbx_endpoint_options options = endpoint_options(talk);
	struct wish wish = { talk->bytes, is_latency };
	const struct rbx_endpoint_data data = { &wish, sizeof(wish) };

	need(rbx_endpoint_connect(talk->ctx, address, &options, &data, NULL,
				  &talk->endpoint), "cannot connect");
	receive(talk, NULL, DEPTH);
	if (is_latency)
		latency(talk);
	else
		rate(talk);
}

static int usage(void)
{
	fprintf(stderr, "usage: talk --serve|--connect HOST:PORT --fabric NAME [--what latency|rate] [--bytes N] [--chain N] [--runtime S]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "serve", required_argument, NULL, 's' },
		{ "connect", required_argument, NULL, 'c' },
		{ "fabric", required_argument, NULL, 'f' },
		{ "what", required_argument, NULL, 'w' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "chain", required_argument, NULL, 'n' },
		{ "runtime", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	static struct talk talk = { .bytes = 64, .chain = 32, .runtime_s = 2 };
	const char *serves = NULL, *asks = NULL, *fabric = "auto";
	bool is_latency = true;
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 's': serves = optarg; break;
		case 'c': asks = optarg; break;
		case 'f': fabric = optarg; break;
		case 'w': is_latency = strcmp(optarg, "rate") != 0; break;
		case 'b': talk.bytes = (uint32_t)atoi(optarg); break;
		case 'n': talk.chain = (uint32_t)atoi(optarg); break;
		case 'r': talk.runtime_s = atof(optarg); break;
		default: return usage();
		}
	}
	if (!serves == !asks || talk.bytes > BYTES_MAX || talk.chain == 0 ||
	    talk.chain > CHAIN_MAX)
		return usage();
	open_all(&talk, fabric);
	if (serves)
		serve(&talk, serves);
	else
		ask(&talk, asks, is_latency);
	rbx_endpoint_close(talk.endpoint);
	return 0;
}
