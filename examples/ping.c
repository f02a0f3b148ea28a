/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ping.c - two programs and a connection: how long does a message take?
 *
 *	cc ping.c -o ping $(pkg-config --cflags --libs rdmabox)
 *	./ping --listen 127.0.0.1:7480 &
 *	./ping 127.0.0.1:7480		once the first says "listening"
 *
 * The listening program sends back what it receives, until the other leaves. There is no
 * RDMAbox server, and no volume: only a queue, an endpoint, and messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdmabox/endpoint.h>
#include <rdmabox/rdmabox.h>

#define PINGS 1000u

struct side {
	struct rbx_context *ctx;
	struct rbx_queue *queue;
	struct rbx_region *region;
	struct rbx_endpoint *endpoint;
	struct rbx_endpoint_options options;
	char memory[2][64]; /* what is sent, and what is received */
};

static void need(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "ping: %s: %s\n", what, rbx_last_error());
	exit(1);
}

static void side_open(struct side *side)
{
	need(rbx_open(&side->ctx, NULL), "no device");
	need(rbx_queue_create(side->ctx, 128, &side->queue), "no queue");
	need(rbx_region_register(side->ctx, side->memory, sizeof(side->memory),
				 &side->region), "no region");
	side->options = (struct rbx_endpoint_options){
		.size_bytes = sizeof(side->options),
		.queue = side->queue,
		.works_when_polled = 1,
	};
}

static void receive(struct side *side)
{
	struct rbx_segment segment = { side->memory[1], 64, side->region };
	struct rbx_receive one = { &segment, 1, NULL };

	need(rbx_endpoint_receive(side->endpoint, &one, 1), "cannot receive");
}

static void ping(struct side *side)
{
	struct rbx_segment segment = { side->memory[0], 64, side->region };
	struct rbx_operation one = {
		.kind = RBX_OPERATION_SEND,
		.flags = RBX_OPERATION_SILENT,
		.segments = &segment,
		.segments_count = 1,
	};

	need(rbx_endpoint_post(side->endpoint, &one, 1), "cannot send");
}

/* Waits for a message; 0: there will be none. */
static int wait_for_one(struct side *side)
{
	struct rbx_completion completion;
	int count;

	do {
		count = rbx_queue_poll(side->queue, &completion, 1, 0);
		need(count < 0, "cannot poll");
	} while (count == 0);
	return completion.status == 0;
}

static void answer(struct side *side, const char *address)
{
	struct rbx_endpoint_listener *listener;
	struct rbx_endpoint_request *request;

	need(rbx_endpoint_listen(side->ctx, address, &listener), "cannot listen");
	printf("listening on %s\n", rbx_endpoint_listener_address(listener));
	fflush(stdout);
	need(rbx_endpoint_next_request(listener, -1, &request), "no connection request came");
	need(rbx_endpoint_accept(request, &side->options, NULL, &side->endpoint),
	     "cannot accept");
	receive(side);
	while (wait_for_one(side)) {
		memcpy(side->memory[0], side->memory[1], 64);
		receive(side);
		ping(side);
	}
	rbx_endpoint_listener_close(listener);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void ask(struct side *side, const char *address)
{
	double begin_us;

	need(rbx_endpoint_connect(side->ctx, address, &side->options, NULL, NULL,
				  &side->endpoint), "cannot connect");
	receive(side);
	begin_us = now_us();
	for (unsigned int i = 0; i < PINGS; i++) {
		snprintf(side->memory[0], 64, "ping %u", i);
		ping(side);
		need(!wait_for_one(side) ||
			     strcmp(side->memory[0], side->memory[1]) != 0,
		     "another answer than was expected");
		receive(side);
	}
	printf("%u pings to %s, %.1f us there and back\n", PINGS,
	       rbx_endpoint_name(side->endpoint), (now_us() - begin_us) / PINGS);
}

int main(int argc, char **argv)
{
	static struct side side;

	if (argc != 2 && !(argc == 3 && strcmp(argv[1], "--listen") == 0)) {
		fprintf(stderr, "usage: ping [--listen] HOST:PORT\n");
		return 2;
	}
	side_open(&side);
	if (argc == 3)
		answer(&side, argv[2]);
	else
		ask(&side, argv[1]);
	rbx_endpoint_close(side.endpoint);
	rbx_region_release(side.region);
	rbx_queue_destroy(side.queue);
	return rbx_close(side.ctx) != 0;
}
