/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * talk.c - messages over an endpoint: how long one takes, and how many there are in a second.
 * peers/talking.h describes the options and what is measured, also for the other libraries.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/talking.h"
#include <rdmabox/endpoint.h>
#include <rdmabox/rdmabox.h>

struct talk {
	struct rbx_context *ctx;
	struct rbx_queue *queue;
	struct rbx_region *region;
	struct rbx_endpoint *endpoint;
	char *memory; /* what is sent, then TALK_DEPTH receives */
	uint32_t bytes;
	struct rbx_completion completions[TALK_BATCH]; /* of the last poll */
	uint32_t completions_count;
};

static void need(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "talk: %s: %s\n", what, rbx_last_error());
	exit(1);
}

static void open_all(struct talk *talk, const char *fabric)
{
	struct rbx_options options;
	char text[64];

	rbx_options_defaults(&options);
	snprintf(text, sizeof(text), "fabric=%s", fabric);
	need(rbx_options_set(&options, text), "fabric");
	need(rbx_open(&talk->ctx, &options), "no device");
	need(rbx_queue_create(talk->ctx, 2 * TALK_DEPTH, &talk->queue), "no queue");
	talk->memory = calloc(TALK_DEPTH + 1, TALK_BYTES_MAX);
	need(!talk->memory, "no memory");
	need(rbx_region_register(talk->ctx, talk->memory,
				 (TALK_DEPTH + 1) * (size_t)TALK_BYTES_MAX, &talk->region),
	     "no region");
}

static struct rbx_endpoint_options endpoint_options(const struct talk *talk)
{
	return (struct rbx_endpoint_options){
		.size_bytes = sizeof(struct rbx_endpoint_options),
		.queue = talk->queue,
		.send_depth = TALK_DEPTH,
		.receive_depth = TALK_DEPTH,
		.works_when_polled = 1,
	};
}

static struct rbx_segment slot(const struct talk *talk, uint32_t index)
{
	return (struct rbx_segment){ talk->memory + (size_t)index * TALK_BYTES_MAX,
				     talk->bytes, talk->region };
}

/* Posts receives for the slots that the completions name, or for all of them. */
static void receive(const struct talk *talk,
		    const struct rbx_completion *completions, uint32_t count)
{
	struct rbx_segment segments[TALK_DEPTH];
	struct rbx_receive receives[TALK_DEPTH];

	for (uint32_t i = 0; i < count; i++) {
		uintptr_t index = completions ? (uintptr_t)completions[i].user :
						i + 1;

		segments[i] = slot(talk, (uint32_t)index);
		receives[i] = (struct rbx_receive){ &segments[i], 1, (void *)index };
	}
	need(rbx_endpoint_receive(talk->endpoint, receives, count),
	     "cannot receive");
}

static void receive_again(void *end)
{
	const struct talk *talk = end;

	receive(talk, talk->completions, talk->completions_count);
}

static void send_chain(void *end, uint32_t count, bool is_told)
{
	const struct talk *talk = end;
	struct rbx_operation chain[TALK_CHAIN_MAX];
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

static uint32_t poll_some(void *end)
{
	struct talk *talk = end;
	int count;

	do {
		count = rbx_queue_poll(talk->queue, talk->completions,
				       TALK_BATCH, 0);
		need(count < 0, "cannot poll");
	} while (count == 0);
	for (int i = 0; i < count; i++)
		if (talk->completions[i].status)
			return 0;
	talk->completions_count = (uint32_t)count;
	return talk->completions_count;
}

static struct talk_way way_of(struct talk *talk)
{
	return (struct talk_way){ talk, send_chain, poll_some, receive_again };
}

static void serve(struct talk *talk, const char *address)
{
	const struct rbx_endpoint_options options = endpoint_options(talk);
	const struct talk_way way = way_of(talk);
	struct rbx_endpoint_listener *listener;
	struct rbx_endpoint_request *request;
	struct talk_wish wish;
	size_t length;

	need(rbx_endpoint_listen(talk->ctx, address, &listener), "cannot listen");
	printf("ready %s\n", rbx_endpoint_listener_address(listener));
	fflush(stdout);
	need(rbx_endpoint_next_request(listener, -1, &request), "no connection request came");
	memcpy(&wish, rbx_endpoint_request_data(request, &length), sizeof(wish));
	need(length < sizeof(wish) || wish.bytes > TALK_BYTES_MAX,
	     "no valid options came from the client");
	talk->bytes = wish.bytes;
	need(rbx_endpoint_accept(request, &options, NULL, &talk->endpoint),
	     "cannot accept");
	receive(talk, NULL, TALK_DEPTH);
	talk_serve(&way, &wish);
}

static void ask(struct talk *talk, const struct talk_options *wanted)
{
	struct rbx_endpoint_options options = endpoint_options(talk);
	struct talk_wish wish = { wanted->bytes, wanted->is_latency };
	const struct rbx_endpoint_data data = { &wish, sizeof(wish) };
	const struct talk_way way = way_of(talk);

	talk->bytes = wanted->bytes;
	need(rbx_endpoint_connect(talk->ctx, wanted->connect, &options, &data,
				  NULL, &talk->endpoint), "cannot connect");
	receive(talk, NULL, TALK_DEPTH);
	need(talk_measure(&way, wanted), "the connection is over");
}

int main(int argc, char **argv)
{
	static struct talk talk;
	struct talk_options options;
	int code = talk_options_parse(argc, argv, &options);

	if (code)
		return code;
	open_all(&talk, options.fabric);
	if (options.serve)
		serve(&talk, options.serve);
	else
		ask(&talk, &options);
	rbx_endpoint_close(talk.endpoint);
	return 0;
}
