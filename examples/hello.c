/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hello.c - the smallest program: a page of remote memory, written and read.
 *
 *	rdmabox serve --listen 127.0.0.1:7471 --memory 1G &
 *	cc hello.c -o hello $(pkg-config --cflags --libs rdmabox)
 *	./hello 127.0.0.1:7471
 */
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

int main(int argc, char **argv)
{
	static char page[4096] = "hello, remote memory", back[4096];
	struct rbx_context *ctx = NULL;
	struct rbx_volume *volume = NULL;
	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: hello SERVER:PORT[,SERVER:PORT...]\n");
		return 2;
	}
	failed = rbx_open(&ctx, NULL) ||
		 rbx_volume_open(ctx, &volume, argv[1], 1 << 30, NULL) ||
		 rbx_write(volume, page, sizeof(page), 4096) ||
		 rbx_read(volume, back, sizeof(back), 4096);
	if (failed)
		fprintf(stderr, "hello: %s\n", rbx_last_error());
	else
		puts(memcmp(page, back, sizeof(page)) ? "something else" : back);
	if (volume)
		rbx_volume_close(volume);
	if (ctx)
		rbx_close(ctx);
	return failed;
}
