/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * local_test.c - a hostile process on the server's own host: what it is handed,
 * before and after its proof, and what it does with that.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/soft/key_words.h"
#include "tests/fabric/local_peer.h"
#include "tests/server/raw_client.h"
#include "tests/server/world.h"

/* A client that has written to its slab, and one that is up to no good. */
struct scene {
	struct world world;
	struct rbx_session *victim;
	struct rbx_loan loan;
	struct rbx_qp *qp;
	struct raw_client thief;
	struct rbx_wire_loan got; /* what the thief has borrowed */
	uint64_t got_epoch;
};

static void scene_open(struct scene *scene, bool secret)
{
	struct world *world = &scene->world;

	world_options(world);
	strcpy(world->options.fabric, "soft");
	if (secret)
		strcpy(world->options.secret_file,
		       world_secret_file("correct horse battery staple\n",
					 0600));
	world_start(world);
	scene->victim = world_session(world);
	assert_int_equal(rbx_session_map(scene->victim, &scene->loan), 0);
	scene->qp = world_qp(world, scene->victim);
	memset(world->memory, 0x77, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(world, scene->qp, RBX_OP_WRITE,
					&scene->loan), 0);
}

/* The victim has lost nothing, and nobody has changed a byte. */
static void scene_close(struct scene *scene)
{
	struct world *world = &scene->world;
	size_t i;

	memset(world->memory, 0, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(world, scene->qp, RBX_OP_READ,
					&scene->loan), 0);
	for (i = 0; i < WORLD_SLAB_BYTES; i++)
		assert_int_equal(world->memory[i], 0x77);
	assert_int_equal(world->witness.lost_count, 0);
	world->choice.ops->destroy_qp(scene->qp);
	rbx_session_close(scene->victim);
	world_stop(world);
}

static void thief_borrow(struct scene *scene)
{
	struct rbx_wire_message map = { .type = RBX_WIRE_SLAB_MAP };
	struct rbx_wire_message answer;

	raw_client_arrive(&scene->thief, &scene->world);
	raw_client_enter(&scene->thief);
	raw_client_send(&scene->thief, &map);
	assert_true(raw_client_hear(&scene->thief, &answer));
	assert_int_equal(answer.type, RBX_WIRE_SLAB_LOAN);
	scene->got = answer.loan;
	scene->got_epoch = answer.epoch;
}

static void thief_return(struct scene *scene)
{
	struct rbx_wire_message unmap = {
		.type = RBX_WIRE_SLAB_UNMAP,
		.epoch = scene->got_epoch,
		.slab_id = scene->got.slab_id,
	};
	struct rbx_wire_message answer;

	raw_client_send(&scene->thief, &unmap);
	assert_true(raw_client_hear(&scene->thief, &answer));
	assert_int_equal(answer.type, RBX_WIRE_SLAB_UNMAPPED);
}

/* A data connection of the thief's session, by hand. */
static void thief_connect(struct scene *scene, struct local_peer *peer,
			  uint64_t serial)
{
	struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_DATA,
		.session_id = scene->thief.welcome.welcome.session_id,
		.serial = serial,
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];

	rbx_proof_of_attach(&scene->thief.connection_key, &attach, attach.mac);
	rbx_wire_attach_encode(&attach, bytes);
	local_peer_connect(peer, rbx_server_address(scene->world.server),
			   bytes, sizeof(bytes));
	assert_int_equal(local_peer_answer(peer), SOFT_ACCEPT);
}

static void nothing_is_handed_over_before_the_proof(bool secret)
{
	const struct rbx_wire_attach control = {
		.kind = RBX_WIRE_ATTACH_CONTROL
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	struct local_peer peer;
	struct scene scene;

	memset(&scene, 0, sizeof(scene));
	scene_open(&scene, secret);
	rbx_wire_attach_encode(&control, bytes);
	local_peer_connect(&peer, rbx_server_address(scene.world.server),
			   bytes, sizeof(bytes));
	assert_int_equal(local_peer_answer(&peer), SOFT_ACCEPT);
	assert_int_equal(local_peer_ask(&peer, scene.loan.rkey), 0);
	assert_int_equal(local_peer_use(&peer, SOFT_READ, scene.loan.rkey,
					scene.loan.remote_addr),
			 SOFT_REFUSED_ACCESS);
	assert_int_equal(peer.fds_count, 0);
	local_peer_leave(&peer);
	scene_close(&scene);
}

static void no_descriptor_before_the_proof_without_secret(void **state)
{
	(void)state;
	nothing_is_handed_over_before_the_proof(false);
}

static void no_descriptor_before_the_proof_with_secret(void **state)
{
	(void)state;
	nothing_is_handed_over_before_the_proof(true);
}

/* Whoever has proved himself gets what is his, and cannot make more of it. */
static void thief_steals_nothing(bool secret)
{
	static const uint8_t opcodes[] = { SOFT_READ, SOFT_WRITE };
	const soft_key_word *words;
	struct local_peer peer;
	struct scene scene;
	size_t i;

	memset(&scene, 0, sizeof(scene));
	scene_open(&scene, secret);
	thief_borrow(&scene);
	for (i = 0; i < 2; i++) {
		thief_connect(&scene, &peer, i + 1);
		assert_int_equal(local_peer_ask(&peer, scene.loan.rkey), 0);
		assert_int_equal(local_peer_ask(&peer, scene.got.rkey),
				 SOFT_MAP_FDS);
		expect_file_keeps_its_size(peer.fds[0], WORLD_SLAB_BYTES);
		expect_file_is_read_only(peer.fds[1], SOFT_KEY_WORDS_BYTES);
		words = soft_key_words_map(peer.fds[1]);
		assert_non_null(words);
		assert_int_equal(atomic_load(&words[scene.loan.rkey %
						    SOFT_KEY_COUNT]), 0);
		soft_key_words_unmap(words);
		assert_int_equal(local_peer_use(&peer, opcodes[i],
						scene.loan.rkey,
						scene.loan.remote_addr),
				 SOFT_REFUSED_ACCESS);
		local_peer_leave(&peer);
	}
	raw_client_leave(&scene.thief);
	scene_close(&scene);
}

static void thief_steals_nothing_without_secret(void **state)
{
	(void)state;
	thief_steals_nothing(false);
}

static void thief_steals_nothing_with_secret(void **state)
{
	(void)state;
	thief_steals_nothing(true);
}

/* The memory behind it is gone, too: a server that believed it would crash. */
static void key_that_was_given_back_stays_dead(void **state)
{
	static const uint8_t opcodes[] = { SOFT_READ, SOFT_WRITE };
	struct local_peer peer;
	struct scene scene;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		memset(&scene, 0, sizeof(scene));
		scene_open(&scene, true);
		thief_borrow(&scene);
		thief_connect(&scene, &peer, 1);
		assert_int_equal(local_peer_ask(&peer, scene.got.rkey),
				 SOFT_MAP_FDS);
		assert_int_equal(local_peer_use(&peer, opcodes[i],
						scene.got.rkey,
						scene.got.remote_addr),
				 SOFT_OK);
		thief_return(&scene);
		expect_file_is_read_only(peer.fds[1], SOFT_KEY_WORDS_BYTES);
		assert_int_equal(local_peer_ask(&peer, scene.got.rkey), 0);
		assert_int_equal(local_peer_use(&peer, opcodes[i],
						scene.got.rkey,
						scene.got.remote_addr),
				 SOFT_REFUSED_ACCESS);
		local_peer_leave(&peer);
		raw_client_leave(&scene.thief);
		scene_close(&scene);
	}
}

/* How many lines of the log speak of it. */
static int lines_about(FILE *log, const char *what)
{
	char line[512];
	int count = 0;

	rewind(log);
	while (fgets(line, sizeof(line), log))
		count += strstr(line, what) != NULL;
	return count;
}

static bool all_refused(struct world *world)
{
	return world_stats(world).refused_malformed >= 100;
}

/* A server whose log is kept. */
struct logged {
	struct scene scene;
	FILE *log;
	int error_fd;
};

static void logged_open(struct logged *logged)
{
	memset(logged, 0, sizeof(*logged));
	scene_open(&logged->scene, true);
	logged->log = tmpfile();
	assert_non_null(logged->log);
	logged->error_fd = dup(STDERR_FILENO);
	dup2(fileno(logged->log), STDERR_FILENO);
}

/* How many lines there were about it. */
static int logged_close(struct logged *logged, const char *what)
{
	int lines;

	dup2(logged->error_fd, STDERR_FILENO);
	close(logged->error_fd);
	lines = lines_about(logged->log, what);
	fclose(logged->log);
	scene_close(&logged->scene);
	return lines;
}

/* Says hello, and asks for a control connection. */
static void visit(struct logged *logged, struct local_peer *peer)
{
	const struct rbx_wire_attach control = {
		.kind = RBX_WIRE_ATTACH_CONTROL
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];

	rbx_wire_attach_encode(&control, bytes);
	local_peer_connect(peer, rbx_server_address(logged->scene.world.server),
			   bytes, sizeof(bytes));
}

/* It may come as often as it likes: it is worth one line. */
static void peer_that_breaks_the_protocol_is_logged_once(void **state)
{
	const struct soft_frame bad = { .opcode = SOFT_ACK, .sequence = 99 };
	uint8_t rest[SOFT_MAP_BYTES];
	struct local_peer peer;
	struct soft_frame frame;
	struct logged logged;
	int i;

	(void)state;
	logged_open(&logged);
	for (i = 0; i < 100; i++) {
		visit(&logged, &peer);
		if (local_peer_answer(&peer) == SOFT_ACCEPT) {
			local_peer_send(&peer, &bad, NULL);
			while (local_peer_hear(&peer, &frame, rest,
					       sizeof(rest)))
				;
		} else {
			i--; /* it has not seen the ends of others yet */
		}
		local_peer_leave(&peer);
	}
	world_wait(&logged.scene.world, all_refused);
	assert_int_equal(logged_close(&logged, "acknowledges requests that were not sent"),
			 1);
}

/* The same if it is gone before it can be accepted. */
static void peer_that_does_not_wait_is_logged_once(void **state)
{
	struct local_peer peer;
	struct logged logged;
	bool is_accepted = false;
	int i;

	(void)state;
	logged_open(&logged);
	for (i = 0; i < 100; i++) {
		visit(&logged, &peer);
		local_peer_leave(&peer);
	}
	/* They are taken in the order in which they came. */
	while (!is_accepted) {
		visit(&logged, &peer);
		is_accepted = local_peer_answer(&peer) == SOFT_ACCEPT;
		local_peer_leave(&peer);
	}
	assert_in_range(logged_close(&logged, "rdmabox serve: "), 0, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_descriptor_before_the_proof_without_secret),
		cmocka_unit_test(no_descriptor_before_the_proof_with_secret),
		cmocka_unit_test(thief_steals_nothing_without_secret),
		cmocka_unit_test(thief_steals_nothing_with_secret),
		cmocka_unit_test(key_that_was_given_back_stays_dead),
		cmocka_unit_test(peer_that_breaks_the_protocol_is_logged_once),
		cmocka_unit_test(peer_that_does_not_wait_is_logged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
