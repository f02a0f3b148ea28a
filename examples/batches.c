/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * batches.c - many requests in flight from registered memory, reaped and submitted again in
 * batches: the fastest way to move pages.
 *
 *	rdmabox serve --listen 127.0.0.1:7471 --memory 1G &
 *	cc batches.c -o batches $(pkg-config --cflags --libs rdmabox)
 *	./batches 127.0.0.1:7471
 *
 * The buffers of all requests are in one region, so no request is copied or registered while
 * it runs. rbx_reap() returns as many ended requests as there are. The program gives each its
 * next page and submits all of them at once, so that they need few doorbells. First all pages
 * are written, then all are read and compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#define PAGE_BYTES 4096
#define PAGES 16384
#define DEPTH 64

struct batch {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct rbx_region *region;
	char *buffers; /* DEPTH pages, in the region */
	struct rbx_request requests[DEPTH];
	uint32_t next_page;
};

static void fill(char *buf, uint32_t page)
{
	for (size_t i = 0; i < PAGE_BYTES / sizeof(uint32_t); i++)
		((uint32_t *)buf)[i] = page * 2654435761u + (uint32_t)i;
}

static int is_right(const char *buf, uint32_t page)
{
	char wanted[PAGE_BYTES];

	fill(wanted, page);
	return memcmp(buf, wanted, PAGE_BYTES) == 0;
}

static void prepare(struct batch *batch, struct rbx_request *request, uint8_t op)
{
	request->op = op;
	request->length_bytes = PAGE_BYTES;
	request->offset = (uint64_t)batch->next_page * PAGE_BYTES;
	if (op == RBX_WRITE)
		fill(request->buf, batch->next_page);
	batch->next_page++;
}

/* Returns 0 if the request did what it should have done. */
static int ended(const struct rbx_request *request)
{
	if (request->status != 0)
		return request->status;
	if (request->op == RBX_READ &&
	    !is_right(request->buf, (uint32_t)(request->offset / PAGE_BYTES)))
		return -1;
	return 0;
}

/* Handles all pages once, with DEPTH requests in flight until there are no more pages. */
static int pass(struct batch *batch, uint8_t op)
{
	struct rbx_request *list[DEPTH];
	unsigned int count = DEPTH, in_flight = 0;
	int err = 0, reaped;

	batch->next_page = 0;
	for (unsigned int i = 0; i < DEPTH; i++)
		list[i] = &batch->requests[i];
	do {
		unsigned int again = 0;

		for (unsigned int i = 0; i < count; i++) {
			if (err || batch->next_page == PAGES)
				break;
			prepare(batch, list[i], op);
			again++;
		}
		if (again && rbx_submit(batch->volume, list, again)) {
			err = -1;
			again = 0;
		}
		in_flight += again;
		if (in_flight == 0)
			break;
		reaped = rbx_reap(batch->ctx, list, DEPTH, -1);
		if (reaped < 0)
			return reaped;
		count = (unsigned int)reaped;
		in_flight -= count;
		for (unsigned int i = 0; i < count; i++)
			err = err ? err : ended(list[i]);
	} while (in_flight != 0 || batch->next_page < PAGES);
	return err;
}

static int open_batch(struct batch *batch, const char *servers)
{
	batch->buffers = aligned_alloc(PAGE_BYTES, DEPTH * PAGE_BYTES);
	if (!batch->buffers || rbx_open(&batch->ctx, NULL) ||
	    rbx_volume_open(batch->ctx, &batch->volume, servers,
			    (uint64_t)PAGES * PAGE_BYTES, NULL) ||
	    rbx_region_register(batch->ctx, batch->buffers, DEPTH * PAGE_BYTES,
				&batch->region))
		return -1;
	for (unsigned int i = 0; i < DEPTH; i++) {
		batch->requests[i].buf = batch->buffers + (size_t)i * PAGE_BYTES;
		batch->requests[i].region = batch->region;
	}
	return 0;
}

static void close_batch(struct batch *batch)
{
	rbx_volume_close(batch->volume);
	if (batch->region)
		rbx_region_release(batch->region);
	rbx_close(batch->ctx);
	free(batch->buffers);
}

int main(int argc, char **argv)
{
	static struct batch batch;
	struct rbx_stats stats;
	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: batches SERVER:PORT[,SERVER:PORT...]\n");
		return 2;
	}
	failed = open_batch(&batch, argv[1]) || pass(&batch, RBX_WRITE) ||
		 pass(&batch, RBX_READ);
	if (failed) {
		fprintf(stderr, "batches: %s\n", rbx_last_error());
	} else {
		rbx_stats_get(batch.ctx, &stats);
		printf("%d pages written, read and compared: %llu requests, "
		       "%llu doorbells\n", PAGES, (unsigned long long)stats.requests,
		       (unsigned long long)stats.doorbells);
	}
	close_batch(&batch);
	return failed != 0;
}
