/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * allocation_test.c - the data path of a client allocates nothing.
 *
 * malloc() and its kin are replaced by ones that count and pass on to the C
 * library's, so every allocation of this process is seen, the pollers' too. The
 * server is a process of its own. After a warm-up a hundred thousand requests
 * go through without a single call.
 *
 * Under a sanitizer, which has its own malloc(), the same load runs uncounted.
 */
#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/port.h"

#define PAGE 4096u
#define DEPTH 32u
#define WARM_UP 5000u
#define VOLUME_BYTES (2u * TENANT_SLAB_BYTES)

static uint64_t allocations_count; /* atomic: also of free() */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define IS_COUNTED true
#define REQUESTS 100000u

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static void note(void)
{
	RBX_ADD_RELAXED(&allocations_count, 1);
}

void *malloc(size_t size)
{
	note();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	note();
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	note();
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	note();
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	note();
	*memory = __libc_memalign(alignment, size);
	return *memory ? 0 : ENOMEM;
}

void free(void *memory)
{
	if (memory)
		note();
	__libc_free(memory);
}

#else
#define IS_COUNTED false
#define REQUESTS 5000u /* that they end is all there is to see */
#endif

/* ---- A load that keeps DEPTH requests outstanding --------------------------*/

struct load {
	struct rbx_volume *volume;
	uint32_t done_count; /* atomic: the test waits for it */
	uint32_t failed_count;
	uint64_t before_count; /* allocations when the warm-up ended */
	uint64_t after_count; /* when the last request ended */
};

struct slot {
	struct load *load;
	struct rbx_request request;
	uint32_t step;
	uint8_t buf[3 * PAGE];
};

static struct slot slots[DEPTH];

/* Sizes and places that are merged, chained, split and fenced. */
static int slot_submit(struct slot *slot)
{
	struct rbx_request *list[] = { &slot->request };
	uint32_t step = slot->step++;

	slot->request.op = step % 3 ? RBX_READ : RBX_WRITE;
	slot->request.flags = step % 500 == 7 ? RBX_FENCE : 0;
	slot->request.length_bytes = (1 + step % 3) * PAGE;
	slot->request.offset = (slot->request.offset + 5 * DEPTH * PAGE) %
			       (VOLUME_BYTES - 4 * PAGE);
	return rbx_submit(slot->load->volume, list, 1);
}

static void slot_done(struct rbx_request *request)
{
	struct slot *slot = request->user;
	struct load *load = slot->load;
	/* One poller: one callback at a time. */
	uint32_t done = load->done_count + 1;

	if (request->status)
		load->failed_count++;
	if (done == WARM_UP)
		load->before_count = RBX_LOAD_RELAXED(&allocations_count);
	if (done == WARM_UP + REQUESTS)
		load->after_count = RBX_LOAD_RELAXED(&allocations_count);
	if (done + DEPTH <= WARM_UP + REQUESTS && slot_submit(slot))
		load->failed_count++;
	RBX_STORE_RELEASE(&load->done_count, done); /* the load may be gone */
}

static void assert_nothing_is_allocated(struct rbx_context *ctx,
					struct rbx_volume *volume, bool poll)
{
	struct load load = { .volume = volume };

	for (uint32_t i = 0; i < DEPTH; i++) {
		slots[i].load = &load;
		slots[i].request = (struct rbx_request){
			.offset = i * PAGE,
			.buf = slots[i].buf,
			.complete = slot_done,
			.user = &slots[i],
		};
		assert_int_equal(slot_submit(&slots[i]), 0);
	}
	tenant_wait(ctx, &load.done_count, WARM_UP + REQUESTS, poll);
	assert_int_equal(load.failed_count, 0);
	if (IS_COUNTED)
		assert_true(load.before_count > 0);
	assert_int_equal(load.after_count - load.before_count, 0);
}

static void data_path(const char *settings, const char *server_fabric,
		      uint32_t replicas)
{
	struct server_process servers[2];
	struct rbx_volume_options options;
	struct rbx_context *ctx = tenant_context(settings);
	struct rbx_volume *volume;
	char list[160] = "";

	for (uint32_t i = 0; i < replicas; i++) {
		server_process_start(&servers[i], "127.0.0.1:0", server_fabric);
		strcat(list, i ? "," : "");
		strcat(list, servers[i].address);
	}
	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	options.checksums = replicas > 1;
	if (rbx_volume_open(ctx, &volume, list, VOLUME_BYTES, &options))
		fail_msg("%s", rbx_last_error());
	assert_nothing_is_allocated(ctx, volume,
				    strstr(settings, "pollers=0") != NULL);
	rbx_volume_close(volume);
	rbx_close(ctx);
	for (uint32_t i = 0; i < replicas; i++)
		server_process_kill(&servers[i]);
}

static void counter_sees_allocations(void **state)
{
	uint64_t before = RBX_LOAD_RELAXED(&allocations_count);
	void *volatile memory = malloc(1);

	(void)state;
	free(memory);
	if (IS_COUNTED)
		assert_int_equal(allocations_count, before + 2);
}

static void data_path_over_tcp_allocates_nothing(void **state)
{
	(void)state;
	data_path("fabric=soft:tcp", NULL, 1);
}

static void data_path_over_a_mapping_allocates_nothing(void **state)
{
	(void)state;
	data_path("fabric=soft", "--fabric=soft", 1);
}

static void data_path_of_a_polling_program_allocates_nothing(void **state)
{
	(void)state;
	data_path("fabric=soft:tcp pollers=0 buffers=staging", NULL, 1);
}

static void data_path_to_replicas_with_checksums_allocates_nothing(void **state)
{
	(void)state;
	data_path("fabric=soft:tcp queue_pairs=2 window=256K", NULL, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counter_sees_allocations),
		cmocka_unit_test(data_path_over_tcp_allocates_nothing),
		cmocka_unit_test(data_path_over_a_mapping_allocates_nothing),
		cmocka_unit_test(
			data_path_of_a_polling_program_allocates_nothing),
		cmocka_unit_test(
			data_path_to_replicas_with_checksums_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
