/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fake_volume.c - see fake_volume.h. */
#include "tests/lib/fake_volume.h"

struct rbx_context *ctx;
struct fake_server *servers[4];

static const char *const addresses[4] = { "a:1", "b:1", "c:1", "d:1" };

int fake_start(void **state)
{
	uint32_t i;

	(void)state;
	ctx = fake_context_open(0, 1);
	for (i = 0; i < 4; i++)
		servers[i] = fake_server_start(addresses[i], SLAB_BYTES, 16);
	return 0;
}

int fake_stop(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		if (!servers[i]->down)
			assert_int_equal(fake_server_lent_count(servers[i]), 0);
	fake_context_close(ctx);
	return 0;
}

struct rbx_volume *open_volume(const char *list, uint32_t replicas,
			       uint32_t checksums)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	options.checksums = checksums;
	assert_int_equal(rbx_volume_open(ctx, &volume, list, VOLUME_BYTES,
					 &options),
			 0);
	return volume;
}

void poll_all(void)
{
	while (rbx_poll(ctx) > 0)
		;
}

static void job_done(struct rbx_request *request)
{
	((struct job *)request->user)->completed_count++;
}

struct job job_make(enum rbx_op op, void *buf, uint32_t length,
		    uint64_t offset)
{
	return (struct job){
		.request = { .op = (uint8_t)op,
			     .status = 99,
			     .length_bytes = length,
			     .offset = offset,
			     .buf = buf,
			     .complete = job_done },
	};
}

int job_submit(struct rbx_volume *volume, struct job *job)
{
	struct rbx_request *request = &job->request;

	request->user = job;
	return rbx_submit(volume, &request, 1);
}

void fill(struct rbx_volume *volume, uint8_t *in)
{
	uint32_t i;

	for (i = 0; i < VOLUME_BYTES; i++)
		in[i] = (uint8_t)(i * 31 + i / 999);
	assert_int_equal(rbx_write(volume, in, VOLUME_BYTES, 0), 0);
}
