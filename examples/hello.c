/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hello.c - writes a page to remote memory and reads it back. */
#include <stdio.h>

#include <rdmabox/rdmabox.h>

int main(int argc, char **argv)
{
	const char *servers = argc > 1 ? argv[1] : "127.0.0.1:7471";
	char page[4096] = "hello, remote memory", back[4096];
	struct rbx_context *ctx;
	struct rbx_volume *volume;

	if (rbx_open(&ctx, NULL) ||
	    rbx_volume_open(ctx, &volume, servers, 1 << 30, NULL) ||
	    rbx_write(volume, page, sizeof(page), 4096) ||
	    rbx_read(volume, back, sizeof(back), 4096)) {
		fprintf(stderr, "hello: %s\n", rbx_last_error());
		return 1;
	}
	puts(back);
	return rbx_volume_close(volume) || rbx_close(ctx);
}
