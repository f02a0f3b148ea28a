/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.c - a count that outlives the program: a named volume is made once, and each run
 * goes on where the one before it ended, or was killed.
 *
 *	rdmabox serve --listen 127.0.0.1:7471 --memory 1G &
 *	cc named.c -o named $(pkg-config --cflags --libs rdmabox)
 *	./named 127.0.0.1:7471
 *	./named 127.0.0.1:7471
 *	rdmabox volume remove count --pool 127.0.0.1:7471
 *
 * A program that was killed still has the volume open as far as its servers know. This one takes
 * it over: the former can write nothing any more, so no count is lost.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include <rdmabox/named_volume.h>

#define NAME "count"
#define SIZE (1 << 20)

static int open_count(struct rbx_context *ctx, struct rbx_volume **volume, const char *servers)
{
	struct rbx_volume_options options;
	int err = rbx_volume_create(ctx, servers, NAME, SIZE, NULL);

	if (err && err != -EEXIST) /* an earlier run made it */
		return err;
	rbx_volume_options_defaults(&options);
	options.name = NAME;
	options.take_over = 1;
	return rbx_volume_open(ctx, volume, servers, 0, &options);
}

int main(int argc, char **argv)
{
	struct rbx_context *ctx = NULL;
	struct rbx_volume *volume = NULL;
	uint64_t runs = 0; /* a new volume reads as zeros */
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: named SERVER:PORT[,SERVER:PORT...]\n");
		return 2;
	}
	err = rbx_open(&ctx, NULL);
	if (!err)
		err = open_count(ctx, &volume, argv[1]);
	if (!err)
		err = rbx_read(volume, &runs, sizeof(runs), 0);
	runs++;
	if (!err)
		err = rbx_write(volume, &runs, sizeof(runs), 0);
	if (err)
		fprintf(stderr, "named: %s\n", rbx_last_error());
	else
		printf("run %llu\n", (unsigned long long)runs);
	rbx_volume_close(volume);
	rbx_close(ctx);
	return err != 0;
}
