/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * one_sided.c - a program lends memory to another one, for as long as it likes.
 *
 *	cc one_sided.c -o one_sided $(pkg-config --cflags --libs rdmabox)
 *	./one_sided --listen 127.0.0.1:7480 &
 *	./one_sided 127.0.0.1:7480
 *
 * The listening program exports a page and accepts with its key. The connecting one writes to
 * it, and tells that by the immediate of the same WRITE. Then the export ends, and the next
 * WRITE is denied: the memory does not change.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmabox/endpoint.h>
#include <rdmabox/rdmabox.h>

static struct rbx_context *ctx;
static struct rbx_queue *queue;
static struct rbx_region *region;
static char page[4096] __attribute__((aligned(4096)));

static void need(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "one_sided: %s: %s\n", what, rbx_last_error());
	exit(1);
}

static struct rbx_completion next(void)
{
	struct rbx_completion completion;

	need(rbx_queue_poll(queue, &completion, 1, 10000) != 1,
	     "nothing completes");
	return completion;
}

/* A receive without a message: it keeps the connection open, and its failure shows the end. */
static void receive_nothing(struct rbx_endpoint *endpoint)
{
	const struct rbx_receive one = { NULL, 0, NULL };

	need(rbx_endpoint_receive(endpoint, &one, 1), "cannot receive");
}

static void lend(const char *address, const struct rbx_endpoint_options *options)
{
	struct rbx_endpoint_listener *listener;
	struct rbx_endpoint_request *request;
	struct rbx_endpoint *endpoint;
	struct rbx_region_key key;
	const struct rbx_endpoint_data data = { &key, sizeof(key) };
	const struct rbx_operation done = { .kind = RBX_OPERATION_SEND };
	struct rbx_completion completion;

	need(rbx_region_export(ctx, NULL, page, sizeof(page), RBX_REGION_WRITE, &region),
	     "cannot export");
	rbx_region_key(region, &key);
	need(rbx_endpoint_listen(ctx, address, &listener), "cannot listen");
	printf("listening on %s\n", rbx_endpoint_listener_address(listener));
	fflush(stdout);
	need(rbx_endpoint_next_request(listener, -1, &request), "no connection request came");
	need(rbx_endpoint_accept(request, options, &data, &endpoint),
	     "cannot accept");
	receive_nothing(endpoint);
	completion = next();
	need(completion.kind != RBX_COMPLETION_WRITTEN, "nothing was written");
	printf("%u bytes came, and the number %u: %s\n", completion.length_bytes,
	       completion.immediate, page);

	rbx_region_release(region);
	receive_nothing(endpoint);
	need(rbx_endpoint_post(endpoint, &done, 1), "cannot send");
	while (next().status == 0)
		; /* until the other side has failed */
	printf("the export has ended, and still it says: %s\n", page);
	rbx_endpoint_close(endpoint);
	rbx_endpoint_listener_close(listener);
}

/* The caller waits for its completion. */
static void write_text(struct rbx_endpoint *endpoint, const struct rbx_region_key *to,
		       const char *text)
{
	const struct rbx_segment segment = { page, (uint32_t)strlen(text) + 1,
					     region };
	const struct rbx_operation write = {
		.kind = RBX_OPERATION_WRITE,
		.flags = RBX_OPERATION_IMMEDIATE,
		.immediate = 42,
		.segments = &segment,
		.segments_count = 1,
		.key = to->key,
		.address = to->address,
	};

	strcpy(page, text);
	need(rbx_endpoint_post(endpoint, &write, 1), "cannot write");
}

/* In a kernel module the key is known only once it is connected. */
static void receive_key(struct rbx_endpoint *endpoint, struct rbx_region_key *key)
{
	const struct rbx_segment segment = { page, sizeof(*key), region };
	const struct rbx_receive one = { &segment, 1, NULL };

	need(rbx_endpoint_receive(endpoint, &one, 1), "cannot receive");
	need(next().status, "no key came");
	memcpy(key, page, sizeof(*key));
}

static void borrow(const char *address, const struct rbx_endpoint_options *options)
{
	char bytes[256];
	struct rbx_endpoint_data answer = { bytes, sizeof(bytes) };
	struct rbx_completion completion;
	struct rbx_endpoint *endpoint;
	struct rbx_region_key key = { 0 };

	need(rbx_region_register(ctx, page, sizeof(page), &region), "no region");
	need(rbx_endpoint_connect(ctx, address, options, NULL, &answer, &endpoint),
	     "cannot connect");
	if (answer.length_bytes >= sizeof(key))
		memcpy(&key, bytes, sizeof(key));
	if (key.length_bytes == 0)
		receive_key(endpoint, &key);
	receive_nothing(endpoint);

	/* The write's completion and the answer to it come in either order. */
	write_text(endpoint, &key, "hello");
	for (int i = 0; i < 2; i++)
		need(next().status, "the write failed");

	/* Its failure ends the connection, and with it the receive that waits for a message. */
	write_text(endpoint, &key, "too late");
	do {
		completion = next();
	} while (completion.kind != RBX_COMPLETION_POSTED);
	/* The other end may close the connection before this end sees the denial. */
	need(completion.status != -EACCES && completion.status != -ECANCELED,
	     "a write to memory that is not lent any more was carried out");
	printf("written; and denied when the export had ended\n");
	rbx_endpoint_close(endpoint);
	rbx_region_release(region);
}

int main(int argc, char **argv)
{
	struct rbx_endpoint_options options = { .size_bytes = sizeof(options) };

	if (argc != 2 && !(argc == 3 && strcmp(argv[1], "--listen") == 0)) {
		fprintf(stderr, "usage: one_sided [--listen] HOST:PORT\n");
		return 2;
	}
	need(rbx_open(&ctx, NULL), "no device");
	need(rbx_queue_create(ctx, 128, &queue), "no queue");
	options.queue = queue;
	if (argc == 3)
		lend(argv[2], &options);
	else
		borrow(argv[1], &options);
	rbx_queue_destroy(queue);
	return rbx_close(ctx) != 0;
}
