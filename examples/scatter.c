/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scatter.c - records with header and data in different places, each written with one
 * request, without a copy by the program.
 *
 *	rdmabox serve --listen 127.0.0.1:7471 --memory 1G &
 *	cc scatter.c -o scatter $(pkg-config --cflags --libs rdmabox)
 *	./scatter 127.0.0.1:7471
 */
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#define RECORDS 8
#define RECORD_BYTES 4096

struct header {
	char name[28];
	uint32_t length_bytes;
};

static struct header headers[RECORDS];
static char data[RECORDS][RECORD_BYTES - sizeof(struct header)];

/* Writes all records, in one chain of work requests. */
static int write_records(struct rbx_context *ctx, struct rbx_volume *volume)
{
	static struct rbx_request requests[RECORDS], *list[RECORDS];
	static struct rbx_segment segments[RECORDS][2];
	struct rbx_request *done;
	int failed = 0;

	for (int i = 0; i < RECORDS; i++) {
		segments[i][0].addr = &headers[i];
		segments[i][0].length_bytes = sizeof(headers[i]);
		segments[i][1].addr = data[i];
		segments[i][1].length_bytes = sizeof(data[i]);
		requests[i].op = RBX_WRITE;
		requests[i].offset = (uint64_t)i * RECORD_BYTES;
		requests[i].length_bytes = RECORD_BYTES;
		requests[i].segments = segments[i];
		requests[i].segments_count = 2;
		list[i] = &requests[i];
	}
	if (rbx_submit(volume, list, RECORDS))
		return -1;
	for (int i = 0; i < RECORDS; i++) {
		rbx_reap(ctx, &done, 1, -1);
		failed |= done->status;
	}
	return failed;
}

/* Reads one of them, into two buffers. */
static int read_record(struct rbx_volume *volume, int index)
{
	struct header header;
	char text[RECORD_BYTES - sizeof(header)];
	struct iovec parts[] = { { &header, sizeof(header) },
				 { text, sizeof(text) } };

	if (rbx_readv(volume, parts, 2, (uint64_t)index * RECORD_BYTES))
		return -1;
	printf("%s, %u bytes: %s\n", header.name, header.length_bytes, text);
	return 0;
}

int main(int argc, char **argv)
{
	struct rbx_context *ctx = NULL;
	struct rbx_volume *volume = NULL;
	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: scatter SERVER:PORT[,SERVER:PORT...]\n");
		return 2;
	}
	for (int i = 0; i < RECORDS; i++) {
		snprintf(headers[i].name, sizeof(headers[i].name), "record %d", i);
		snprintf(data[i], sizeof(data[i]), "what is in record %d", i);
		headers[i].length_bytes = (uint32_t)strlen(data[i]);
	}
	failed = rbx_open(&ctx, NULL) ||
		 rbx_volume_open(ctx, &volume, argv[1], 1 << 20, NULL) ||
		 write_records(ctx, volume) || read_record(volume, 5);
	if (failed)
		fprintf(stderr, "scatter: %s\n", rbx_last_error());
	if (volume)
		rbx_volume_close(volume);
	if (ctx)
		rbx_close(ctx);
	return failed;
}
