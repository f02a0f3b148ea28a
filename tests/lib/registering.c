/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* registering.c - see registering.h. */
#include "tests/lib/registering.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/random.h"
#include "lib/clock.h"

static char tune_path[64];
char auto_settings[160];

int make_tune_file(void **state)
{
	FILE *file;

	(void)state;
	strcpy(tune_path, "/tmp/rdmabox-buffers.XXXXXX");
	file = fdopen(mkstemp(tune_path), "w");
	fprintf(file,
		"{\"version\": 1, \"devices\": {\"soft tcp:registered\": "
		"{\"break_even_bytes\": %u}}}\n",
		BREAK_EVEN);
	snprintf(auto_settings, sizeof(auto_settings),
		 REGISTERED "buffers=auto tune_file=%s", tune_path);
	return fclose(file);
}

int remove_tune_file(void **state)
{
	(void)state;
	return unlink(tune_path);
}

uint64_t registered(struct rbx_context *ctx)
{
	return tenant_stats(ctx).registrations - 1;
}

void assert_all_end(struct rbx_context *ctx)
{
	uint64_t end_ns = rbx_now_ns() + TENANT_WAIT_MS * 1000000ull;

	while (tenant_stats(ctx).deregistrations != registered(ctx)) {
		if (rbx_now_ns() > end_ns)
			fail_msg("%llu of %llu registrations have ended",
				 (unsigned long long)tenant_stats(ctx)
					 .deregistrations,
				 (unsigned long long)registered(ctx));
		usleep(200);
	}
}

void transfer_any(struct tenant *tenant, int count)
{
	uint8_t *from = malloc(TENANT_SLAB_BYTES);
	uint8_t *to = malloc(TENANT_SLAB_BYTES);
	struct rbx_random random;

	rbx_random_seed(&random, 7);
	tenant_fill(from, TENANT_SLAB_BYTES, 8);
	for (int i = 0; i < count; i++) {
		/* Lengths of every magnitude. */
		uint32_t most = 2u << rbx_random_below(&random, 21);
		uint32_t length = 1 + rbx_random_below(&random, most);
		uint64_t at = rbx_random_below(&random,
					       TENANT_SLAB_BYTES - length);

		assert_int_equal(tenant_transfer(tenant, RBX_WRITE, from + at,
						 length, at),
				 0);
		assert_int_equal(tenant_transfer(tenant, RBX_READ, to + at,
						 length, at),
				 0);
		assert_memory_equal(to + at, from + at, length);
	}
	free(from);
	free(to);
}
