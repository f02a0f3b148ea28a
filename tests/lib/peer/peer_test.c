/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_test.c - server processes that are killed, stopped, restarted, full or
 * of another mind: every request ends, with the truth.
 *
 * The load writes pages of a volume, each with a number that grows, and reads
 * them back; what a successful read brings is what was last acknowledged.
 */
#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/port.h"
#include "lib/clock.h"

#define PAGE 4096u
#define WORDS (PAGE / sizeof(uint64_t))
#define SLOTS 48u
#define PAGES_EACH 8u /* of a slot */
#define VOLUME_BYTES (2u * TENANT_SLAB_BYTES)

struct load {
	struct rbx_volume *volume;
	bool stop; /* atomic */
	uint32_t running_count; /* atomic */
	uint32_t requests_count; /* atomic */
	uint32_t wrong_count; /* atomic: reads of something else */
	uint32_t strange_count; /* atomic: errors that are not -EIO */
	uint32_t failed_count; /* atomic */
};

struct slot {
	struct load *load;
	struct rbx_request request;
	uint32_t page_index;
	bool reads_only; /* so that each replica is sure to be read from */
	uint64_t numbers[PAGES_EACH]; /* last acknowledged */
	uint64_t page[WORDS];
};

/* The pages of a slot are spread over all slabs. */
static uint64_t offset_of(uint32_t slot, uint32_t page)
{
	return page * (VOLUME_BYTES / PAGES_EACH) + slot * PAGE;
}

static void slot_go(struct slot *slot, enum rbx_op op)
{
	struct rbx_request *list[] = { &slot->request };
	uint64_t number = op == RBX_WRITE ?
				  slot->numbers[slot->page_index] + 1 :
				  UINT64_MAX;

	for (uint32_t i = 0; i < WORDS; i++)
		slot->page[i] = number;
	slot->request.op = (uint8_t)op;
	if (rbx_submit(slot->load->volume, list, 1)) {
		RBX_FETCH_ADD(&slot->load->strange_count, 1);
		RBX_FETCH_ADD(&slot->load->running_count, -1);
	}
}

static bool holds(const struct slot *slot, uint64_t number)
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (slot->page[i] != number)
			return false;
	return true;
}

static void slot_next(struct slot *slot)
{
	if (slot->request.op == RBX_WRITE) {
		slot_go(slot, RBX_READ);
		return;
	}
	slot->page_index = (slot->page_index + 1) % PAGES_EACH;
	slot->request.offset =
		(slot->request.offset + VOLUME_BYTES / PAGES_EACH) %
		VOLUME_BYTES;
	slot_go(slot, slot->reads_only ? RBX_READ : RBX_WRITE);
}

static void slot_done(struct rbx_request *request)
{
	struct slot *slot = request->user;
	struct load *load = slot->load;

	RBX_FETCH_ADD(&load->requests_count, 1);
	if (request->status) {
		RBX_FETCH_ADD(&load->failed_count, 1);
		RBX_FETCH_ADD(&load->strange_count, request->status != -EIO);
	} else if (request->op == RBX_WRITE) {
		slot->numbers[slot->page_index]++;
	} else if (!holds(slot, slot->numbers[slot->page_index])) {
		RBX_FETCH_ADD(&load->wrong_count, 1);
	}
	if (request->status || RBX_LOAD_RELAXED(&load->stop))
		RBX_FETCH_ADD(&load->running_count, -1);
	else
		slot_next(slot);
}

static struct slot *load_start(struct load *load, struct rbx_volume *volume)
{
	struct slot *slots = calloc(SLOTS, sizeof(*slots));

	assert_non_null(slots);
	*load = (struct load){ .volume = volume, .running_count = SLOTS };
	for (uint32_t i = 0; i < SLOTS; i++) {
		slots[i].load = load;
		slots[i].page_index = i % PAGES_EACH;
		slots[i].request = (struct rbx_request){
			.length_bytes = PAGE,
			.offset = offset_of(i, i % PAGES_EACH),
			.buf = slots[i].page,
			.complete = slot_done,
			.user = &slots[i],
		};
		slots[i].reads_only = i % 4 == 3;
		slot_go(&slots[i], slots[i].reads_only ? RBX_READ : RBX_WRITE);
	}
	return slots;
}

static void load_wait_end(struct load *load)
{
	uint64_t end_ns = rbx_now_ns() + TENANT_WAIT_MS * 1000000ull;

	while (RBX_LOAD_ACQUIRE(&load->running_count) != 0) {
		usleep(500);
		if (rbx_now_ns() > end_ns)
			fail_msg("%u requests hang", load->running_count);
	}
}

static void load_go_on(struct load *load, uint32_t count)
{
	uint32_t now = RBX_LOAD_ACQUIRE(&load->requests_count);

	tenant_wait(NULL, &load->requests_count, now + count, false);
}

static void load_stop(struct load *load)
{
	RBX_STORE_RELAXED(&load->stop, true);
	load_wait_end(load);
}

/* The connection was given up: what was in flight has come back, and nothing
 * follows it. */
static void wait_flushed(struct rbx_context *ctx)
{
	int empty_ms = 0;

	for (int ms = 0; empty_ms < 100; ms++) {
		if (ms == TENANT_WAIT_MS)
			fail_msg("silence is not noticed");
		usleep(1000);
		empty_ms = tenant_stats(ctx).inflight_bytes ? 0 : empty_ms + 1;
	}
}

static struct rbx_volume *open_volume(struct rbx_context *ctx,
				      const char *servers, uint32_t replicas)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	if (rbx_volume_open(ctx, &volume, servers, VOLUME_BYTES, &options))
		fail_msg("%s", rbx_last_error());
	return volume;
}

/* ---- One server ------------------------------------------------------------*/

static void killed_server_ends_every_request_with_an_error(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct server_process server;
	struct rbx_volume *volume;
	struct slot *slots;
	struct load load;
	uint8_t page[PAGE];

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	volume = open_volume(ctx, server.address, 1);
	slots = load_start(&load, volume);
	load_go_on(&load, 2000);
	server_process_kill(&server);
	load_wait_end(&load);
	assert_int_equal(load.failed_count, SLOTS);
	assert_int_equal(load.strange_count, 0);
	assert_int_equal(load.wrong_count, 0);
	assert_int_equal(rbx_read(volume, page, PAGE, 0), -EIO);
	assert_int_equal(rbx_write(volume, page, PAGE, 0), -EIO);
	assert_int_equal(tenant_stats(ctx).inflight_bytes, 0);
	rbx_volume_close(volume);
	rbx_close(ctx);
	free(slots);
}

/* SIGSTOP is what a peer without answers looks like. */
static void short_stop_delays_and_fails_nothing(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=8000");
	struct server_process server;
	struct rbx_volume *volume;
	struct slot *slots;
	struct load load;

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	volume = open_volume(ctx, server.address, 1);
	slots = load_start(&load, volume);
	for (int i = 0; i < 3; i++) {
		load_go_on(&load, 500);
		server_process_signal(&server, SIGSTOP);
		usleep(200000);
		server_process_signal(&server, SIGCONT);
	}
	load_go_on(&load, 500);
	load_stop(&load);
	assert_int_equal(load.failed_count, 0);
	assert_int_equal(load.wrong_count, 0);
	rbx_volume_close(volume);
	rbx_close(ctx);
	server_process_kill(&server);
	free(slots);
}

/* Until silence is noticed, and not until the peer is given up. */
static void stop_that_is_noticed_is_survived(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=4000");
	struct server_process server;
	struct rbx_volume *volume;
	struct slot *slots;
	struct load load;

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	volume = open_volume(ctx, server.address, 1);
	slots = load_start(&load, volume);
	load_go_on(&load, 500);
	server_process_signal(&server, SIGSTOP);
	wait_flushed(ctx);
	server_process_signal(&server, SIGCONT);
	load_go_on(&load, 500);
	load_stop(&load);
	assert_int_equal(load.failed_count, 0);
	assert_int_equal(load.wrong_count, 0);
	assert_true(tenant_stats(ctx).retries > 0);
	rbx_volume_close(volume);
	rbx_close(ctx);
	server_process_kill(&server);
	free(slots);
}

static void long_stop_ends_every_request_and_brings_no_junk(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=400");
	struct server_process server;
	struct rbx_volume *volume;
	struct slot *slots;
	struct load load;
	uint8_t page[PAGE];

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	volume = open_volume(ctx, server.address, 1);
	slots = load_start(&load, volume);
	load_go_on(&load, 500);
	server_process_signal(&server, SIGSTOP);
	load_wait_end(&load);
	assert_int_equal(load.failed_count, SLOTS);
	assert_int_equal(load.strange_count, 0);
	server_process_signal(&server, SIGCONT);
	/* Acknowledged writes may be there, but nobody can know: it is lost. */
	assert_int_equal(rbx_read(volume, page, PAGE, 0), -EIO);
	assert_int_equal(load.wrong_count, 0);
	rbx_volume_close(volume);
	rbx_close(ctx);
	server_process_kill(&server);
	free(slots);
}

/* At the same address, with none of what it had. */
static void restarted_server_is_another_one(void **state)
{
	struct server_process server, again;
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=4000");
	struct rbx_volume *volume;
	struct slot *slots;
	struct load load;
	uint8_t page[PAGE];

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	volume = open_volume(ctx, server.address, 1);
	slots = load_start(&load, volume);
	load_go_on(&load, 500);
	strcpy(again.address, server.address);
	server_process_kill(&server);
	server_process_start(&again, server.address, NULL);
	load_wait_end(&load);
	assert_int_equal(load.failed_count, SLOTS);
	assert_int_equal(load.strange_count, 0);
	assert_int_equal(load.wrong_count, 0);
	assert_int_equal(rbx_read(volume, page, PAGE, 0), -EIO);
	rbx_volume_close(volume);
	/* It serves as a new one. */
	volume = open_volume(ctx, again.address, 1);
	memset(page, 1, sizeof(page));
	assert_int_equal(rbx_read(volume, page, PAGE, 0), 0);
	for (uint32_t i = 0; i < PAGE; i++)
		assert_int_equal(page[i], 0);
	rbx_volume_close(volume);
	rbx_close(ctx);
	server_process_kill(&again);
	free(slots);
}

/* The first call may find the connection there still; no later one is without reason. */
static void call_of_a_lost_server_says_why(void **state)
{
	static const char told[] = "is not connected: ";
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=400");
	struct server_process server;
	struct rbx_remote *remote;
	struct rbx_peer *peer;
	const char *reason = NULL;

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	assert_int_equal(rbx_peer_connect(ctx, &peer, server.address), 0);
	server_process_kill(&server);
	for (int i = 0; i < 10000 && !reason; i++) {
		assert_true(rbx_borrow(peer, &remote, 4096) < 0);
		reason = strstr(rbx_last_error(), told);
		usleep(1000);
	}
	assert_non_null(reason);
	assert_true(strlen(reason + strlen(told)) > 10);
	rbx_peer_close(peer);
	rbx_close(ctx);
}

/* ---- Several servers -------------------------------------------------------*/

static void killed_replica_loses_no_byte(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct server_process servers[2];
	struct rbx_volume *volume;
	struct slot *slots;
	struct load load;
	char list[160];

	(void)state;
	for (int i = 0; i < 2; i++)
		server_process_start(&servers[i], "127.0.0.1:0", NULL);
	snprintf(list, sizeof(list), "%s,%s", servers[0].address,
		 servers[1].address);
	volume = open_volume(ctx, list, 2);
	slots = load_start(&load, volume);
	load_go_on(&load, 2000);
	server_process_kill(&servers[0]);
	load_go_on(&load, 2000);
	load_stop(&load);
	assert_int_equal(load.failed_count, 0);
	assert_int_equal(load.wrong_count, 0);
	assert_true(tenant_stats(ctx).failovers > 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		for (uint32_t p = 0; p < PAGES_EACH; p++) {
			assert_int_equal(rbx_read(volume, slots[i].page, PAGE,
						  offset_of(i, p)),
					 0);
			assert_true(holds(&slots[i], slots[i].numbers[p]));
		}
	}
	rbx_volume_close(volume);
	rbx_close(ctx);
	server_process_kill(&servers[1]);
	free(slots);
}

/* ---- Servers that say no ---------------------------------------------------*/

static void full_server_is_refused_with_a_reason(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct server_process server;
	struct rbx_volume *volume, *second;

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	assert_int_equal(rbx_volume_open(ctx, &volume, server.address,
					 TENANT_SLABS *
						 (uint64_t)TENANT_SLAB_BYTES,
					 NULL),
			 0);
	assert_int_equal(rbx_volume_open(ctx, &second, server.address, PAGE,
					 NULL),
			 -ENOSPC);
	assert_true(rbx_last_error()[0] != '\0');
	rbx_volume_close(volume);
	assert_int_equal(rbx_volume_open(ctx, &second, server.address, PAGE,
					 NULL),
			 0);
	rbx_volume_close(second);
	rbx_close(ctx);
	server_process_kill(&server);
}

static const char *secret_file(const char *text)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/rdmabox-peer-secret-%d",
		 (int)getpid());
	unlink(path);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static void wrong_secret_is_refused_with_a_reason(void **state)
{
	struct rbx_options options;
	struct server_process server;
	struct rbx_context *ctx;
	struct rbx_peer *peer;
	char more[96];

	(void)state;
	snprintf(more, sizeof(more), "--secret-file=%s",
		 secret_file("correct horse battery staple\n"));
	server_process_start(&server, "127.0.0.1:0", more);
	rbx_options_defaults(&options);
	strcpy(options.fabric, "soft:tcp");

	/* None, another one, the same one. */
	assert_int_equal(rbx_open(&ctx, &options), 0);
	assert_int_equal(rbx_peer_connect(ctx, &peer, server.address), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "secret"));
	rbx_close(ctx);

	strcpy(options.secret_file, secret_file("quite another secret\n"));
	assert_int_equal(rbx_open(&ctx, &options), 0);
	assert_int_equal(rbx_peer_connect(ctx, &peer, server.address), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "secret"));
	rbx_close(ctx);

	secret_file("correct horse battery staple\n");
	assert_int_equal(rbx_open(&ctx, &options), 0);
	assert_int_equal(rbx_peer_connect(ctx, &peer, server.address), 0);
	rbx_peer_close(peer);
	rbx_close(ctx);
	unlink(options.secret_file);
	server_process_kill(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_server_ends_every_request_with_an_error),
		cmocka_unit_test(call_of_a_lost_server_says_why),
		cmocka_unit_test(short_stop_delays_and_fails_nothing),
		cmocka_unit_test(stop_that_is_noticed_is_survived),
		cmocka_unit_test(long_stop_ends_every_request_and_brings_no_junk),
		cmocka_unit_test(restarted_server_is_another_one),
		cmocka_unit_test(killed_replica_loses_no_byte),
		cmocka_unit_test(full_server_is_refused_with_a_reason),
		cmocka_unit_test(wrong_secret_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
