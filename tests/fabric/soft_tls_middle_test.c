/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_tls_middle_test.c - whoever stands between two ends under TLS can end their
 * connection, and nothing else: no changed byte gets into memory, and what is reported done
 * is done.
 *
 * Each word of memory names its place and the round in which it was written, so that a wrong
 * one is seen wherever it comes from.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/soft/limits.h"
#include "tests/fabric/middle.h"
#include "tests/fabric/tls_devices.h"

#define PATIENCE_MS 60000
#define SLOT_BYTES (64u << 10)
#define SLOT_WORDS (SLOT_BYTES / sizeof(uint64_t))
#define SLOTS 8u
#define ROUNDS 400u

struct side {
	struct rbx_qp *qp;
	/* SLOTS slots; the device has another mapping of them: their bytes are ordered by
	 * messages, of which no tool that looks for data races knows. */
	uint64_t *memory, *mapping;
	struct rbx_mr *mr;
};

/* Two ends with a man in the middle. */
struct scene {
	struct tls_world world;
	struct middle middle;
	struct side client, server;
	atomic_bool gave_up; /* the client did */
};

static uint64_t word(uint32_t slot, uint32_t place, uint32_t round)
{
	return (uint64_t)round << 32 | slot << 16 | place;
}

static void memory_open(struct rbx_device *device, struct side *side)
{
	struct rbx_mr_init init = {
		.length_bytes = SLOTS * SLOT_BYTES,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
		.memory_fd = -1,
	};
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, SLOTS * SLOT_BYTES), 0);
	side->memory = mmap(NULL, init.length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	side->mapping = mmap(NULL, init.length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	init.addr = side->mapping;
	assert_int_equal(device->ops->register_memory(device, &init, 1, &side->mr, NULL), 0);
}

static void memory_close(struct rbx_device *device, struct side *side)
{
	device->ops->deregister_memory(device, &side->mr, 1);
	munmap(side->memory, SLOTS * SLOT_BYTES);
	munmap(side->mapping, SLOTS * SLOT_BYTES);
}

static void scene_open(struct scene *scene, enum middle_deed deed, bool to_client, uint64_t at)
{
	memset(scene, 0, sizeof(*scene));
	tls_world_open(&scene->world, tls_device(RBX_TLS_ALWAYS, 1),
		       tls_device(RBX_TLS_ALWAYS, 1));
	memory_open(scene->world.server, &scene->server);
	memory_open(scene->world.client, &scene->client);
	scene->middle.deed = deed;
	scene->middle.to_client = to_client;
	scene->middle.at = at;
	middle_open(&scene->middle, scene->world.listener->address);
}

static void qps_close(struct scene *scene)
{
	if (scene->client.qp)
		scene->world.ops->destroy_qp(scene->client.qp);
	if (scene->server.qp)
		scene->world.ops->destroy_qp(scene->server.qp);
	scene->client.qp = NULL;
	scene->server.qp = NULL;
}

static void scene_close(struct scene *scene)
{
	qps_close(scene);
	middle_close(&scene->middle);
	memory_close(scene->world.server, &scene->server);
	memory_close(scene->world.client, &scene->client);
	tls_world_close(&scene->world);
}

static void *accept_run(void *argument)
{
	struct scene *scene = argument;
	const struct rbx_qp_init init = tls_qp_init(scene->world.server_cq, true);
	struct rbx_conn_request *request;

	while (scene->world.ops->get_request(scene->world.listener, &request)) {
		if (atomic_load(&scene->gave_up))
			return NULL;
		usleep(200);
	}
	(void)scene->world.ops->accept(request, &init, NULL, 0, &scene->server.qp, NULL);
	return NULL;
}

/* 0, or what connect() returns. */
static int scene_connect(struct scene *scene)
{
	char error[RBX_ERROR_TEXT_MAX];
	/* What is done to the handshake may leave one side waiting for the other. */
	const bool is_doomed = scene->middle.deed && scene->middle.at < 1000;
	pthread_t thread;
	int err;

	pthread_create(&thread, NULL, accept_run, scene);
	err = tls_connect(&scene->world, scene->middle.address, is_doomed ? 500 : 20000,
			  &scene->client.qp, error);
	atomic_store(&scene->gave_up, err);
	pthread_join(thread, NULL);
	return err;
}

/* The status of the next completion. */
static int wait_status(struct scene *scene)
{
	uint64_t deadline_ms = test_now_ms() + PATIENCE_MS;
	struct rbx_wc wc;

	while (!scene->world.ops->poll(scene->world.client_cq, &wc, 1))
		if (test_now_ms() > deadline_ms)
			fail_msg("no completion came");
	return wc.status;
}

static int post_bytes_and_wait(struct scene *scene, uint8_t opcode, uint32_t slot,
			       uint32_t bytes)
{
	struct rbx_sge sge = {
		.addr = (uintptr_t)scene->client.mapping + slot * SLOT_BYTES,
		.length_bytes = bytes,
		.lkey = scene->client.mr->lkey,
	};
	struct rbx_wr *bad, wr = {
		.sges = &sge,
		.sge_count = 1,
		.opcode = opcode,
		.flags = RBX_WR_SIGNALED,
		.rkey = scene->server.mr->rkey,
		.remote_addr = (uintptr_t)scene->server.mapping + slot * SLOT_BYTES,
	};

	assert_int_equal(scene->world.ops->post_send(scene->client.qp, &wr, &bad), 0);
	return wait_status(scene);
}

static int post_and_wait(struct scene *scene, uint8_t opcode, uint32_t slot)
{
	return post_bytes_and_wait(scene, opcode, slot, SLOT_BYTES);
}

static void slot_fill(const struct side *side, uint32_t slot, uint32_t round)
{
	uint32_t i;

	for (i = 0; i < SLOT_WORDS; i++)
		side->memory[slot * SLOT_WORDS + i] = word(slot, i, round);
}

/* All of it is of this round; or, if it need not be all, of that before. */
static void slot_check(const struct side *side, uint32_t slot, uint32_t round, bool all)
{
	uint32_t i;

	for (i = 0; i < SLOT_WORDS; i++) {
		uint64_t is = side->memory[slot * SLOT_WORDS + i];

		if (is != word(slot, i, round) &&
		    (all || is != (round < SLOTS ? 0 : word(slot, i, round - SLOTS))))
			fail_msg("word %u of slot %u is %llx in round %u", i, slot,
				 (unsigned long long)is, round);
	}
}

/* Writes and reads until something fails. Returns the round in which it did. */
static uint32_t work_until_it_fails(struct scene *scene)
{
	uint32_t round, slot = 0;
	int status = 0;

	for (round = 0; round < ROUNDS; round++) {
		slot = round % SLOTS;
		slot_fill(&scene->client, slot, round);
		status = post_and_wait(scene, RBX_OP_WRITE, slot);
		if (status)
			break;
		slot_check(&scene->server, slot, round, true);
		memset(scene->client.memory + slot * SLOT_WORDS, 0, SLOT_BYTES);
		status = post_and_wait(scene, RBX_OP_READ, slot);
		if (status)
			break;
		slot_check(&scene->client, slot, round, true);
	}
	if (status) {
		if (status != -EHOSTUNREACH)
			fail_msg("status %d", status);
		slot_check(&scene->server, slot, round, false);
	}
	return round;
}

static void expect_end(enum middle_deed deed, bool to_client, uint64_t at)
{
	struct scene scene;
	scene_open(&scene, deed, to_client, at);
	if (!scene_connect(&scene)) {
		assert_true(work_until_it_fails(&scene) < ROUNDS);
		assert_true(atomic_load(&scene.middle.is_done));
	}
	scene_close(&scene);
}

static void untouched_connection_works(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, MIDDLE_NOTHING, false, 0);
	assert_int_equal(scene_connect(&scene), 0);
	assert_int_equal(work_until_it_fails(&scene), ROUNDS);
	scene_close(&scene);
}

/* In the handshake, in the hello, and in data, in both directions. */
static const uint64_t places[] = { 0, 3, 40, 200, 300, 400, 500, 5000, 100003, 1000001 };

static void each_place(enum middle_deed deed)
{
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		expect_end(deed, false, places[i]);
		expect_end(deed, true, places[i]);
	}
}

static void changed_byte_ends_it(void **state)
{
	(void)state;
	each_place(MIDDLE_FLIP);
}

static void each_byte_of_a_record_counts(void **state)
{
	uint64_t at;

	(void)state;
	for (at = 20000; at < 20000 + 16 * 25; at += 25)
		expect_end(MIDDLE_FLIP, at % 2, at);
}

static void missing_segment_ends_it(void **state)
{
	(void)state;
	expect_end(MIDDLE_DROP, false, 100003);
	expect_end(MIDDLE_DROP, true, 100003);
}

static void truncated_stream_ends_it(void **state)
{
	(void)state;
	each_place(MIDDLE_TRUNCATE);
}

static void repeated_segment_ends_it(void **state)
{
	(void)state;
	each_place(MIDDLE_REPLAY);
}

/* With the same key, each connection has secrets of its own. */
static void bytes_of_another_connection_end_it(void **state)
{
	struct side second[2];
	struct scene scene;
	int direction;

	(void)state;
	for (direction = 0; direction < 2; direction++) {
		struct side first[2];

		scene_open(&scene, MIDDLE_SPLICE, direction, 50000);
		assert_int_equal(scene_connect(&scene), 0);
		first[0] = scene.client;
		first[1] = scene.server;
		assert_int_equal(scene_connect(&scene), 0);
		second[0] = scene.client;
		second[1] = scene.server;
		scene.client = first[0];
		scene.server = first[1];
		assert_true(work_until_it_fails(&scene) < ROUNDS);
		scene.world.ops->destroy_qp(second[0].qp);
		scene.world.ops->destroy_qp(second[1].qp);
		scene_close(&scene);
	}
}

/* The server's end knows why it ended, for its log. */
static void owner_is_told_of_changed_bytes(void **state)
{
	uint64_t deadline_ms = test_now_ms() + PATIENCE_MS;
	struct rbx_recv_wr *bad, receive = { .wr_id = 1 };
	struct scene scene;
	struct rbx_wc wc;

	(void)state;
	scene_open(&scene, MIDDLE_FLIP, false, 100003);
	assert_int_equal(scene_connect(&scene), 0);
	assert_int_equal(scene.world.ops->post_recv(scene.server.qp, &receive, &bad), 0);
	work_until_it_fails(&scene);
	while (!scene.world.ops->poll(scene.world.server_cq, &wc, 1))
		if (test_now_ms() > deadline_ms)
			fail_msg("the end was not reported");
	assert_int_equal(wc.status, -ECANCELED);
	assert_non_null(scene.server.qp->cut_off);
	assert_non_null(strstr(scene.server.qp->cut_off, "changed on its way"));
	scene_close(&scene);
}

/* Each request is a record, and so is its answer: both sides take new keys. */
static void work_goes_on_under_new_keys(void **state)
{
	struct scene scene;
	uint32_t i;

	(void)state;
	scene_open(&scene, MIDDLE_NOTHING, false, 0);
	assert_int_equal(scene_connect(&scene), 0);
	for (i = 0; i < SOFT_TLS_RECORDS_MAX + 1000; i++) {
		scene.client.memory[0] = i;
		assert_int_equal(post_bytes_and_wait(&scene, RBX_OP_WRITE, 0, 8), 0);
	}
	assert_int_equal(scene.server.memory[0], i - 1);
	assert_int_equal(work_until_it_fails(&scene), ROUNDS);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(untouched_connection_works),
		cmocka_unit_test(changed_byte_ends_it),
		cmocka_unit_test(each_byte_of_a_record_counts),
		cmocka_unit_test(missing_segment_ends_it),
		cmocka_unit_test(truncated_stream_ends_it),
		cmocka_unit_test(repeated_segment_ends_it),
		cmocka_unit_test(bytes_of_another_connection_end_it),
		cmocka_unit_test(work_goes_on_under_new_keys),
		cmocka_unit_test(owner_is_told_of_changed_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
