/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * first_copies_test.c - the server that has the first and only replica of a slab is
 * spared; one that has the last of several is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/queue_pairs.h"
#include "client/session_state.h"
#include "core/slab_spare.h"
#include "core/slab_way.h"
#include "lib/volume/volume.h"
#include "sim/world.h"

#define SERVERS 2u

static struct rbx_session sessions[SERVERS];
static struct rbx_peer peers[SERVERS];
static struct rbx_volume_server servers[SERVERS];
static struct rbx_volume volume;
static struct rbx_sim_client client;
static struct rbx_slab *slab;

/* A volume of one slab, blank, of two replicas. */
static int make(void **state)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = RBX_SLAB_BYTES_MIN,
		.slab_bytes = RBX_SLAB_BYTES_MIN,
		.fragment_bytes = RBX_PAGE_BYTES,
		.replicas = SERVERS,
		.on_demand = true,
	};
	struct rbx_volume_map *map;

	assert_int_equal(rbx_volume_shape_check(&shape), 0);
	map = rbx_volume_map_init(calloc(1, rbx_volume_map_size(&shape)),
				  &shape, 1);
	for (uint32_t i = 0; i < SERVERS; i++) {
		snprintf(sessions[i].address.name,
			 sizeof(sessions[i].address.name), "n%u:7000", i + 1);
		peers[i].session = &sessions[i];
		servers[i].peer = &peers[i];
	}
	volume.control.servers = servers;
	volume.control.server_count = SERVERS;
	volume.control.flow.map = map;
	client.volume = &volume;
	slab = rbx_slab_at(&map->shape, 0);
	rbx_sim_first_copies_look(&client);
	*state = map;
	return 0;
}

static int end(void **state)
{
	free(*state);
	return 0;
}

static uint32_t lend(uint32_t server, enum rbx_replica_state state)
{
	const struct rbx_loan loan = { .slab_id = server + 1, .epoch = 1 };
	uint32_t slot;

	if (state == RBX_REPLICA_REBUILDING)
		assert_true(rbx_slab_record_give(slab));
	slot = rbx_slab_borrow(slab, server);
	rbx_slab_lent(slab, slot, &loan, state);
	return slot;
}

static void begin(void)
{
	struct rbx_piece_list todo = { 0 };

	rbx_slab_begin(slab, 0, &todo);
}

static bool is_spared(uint32_t server)
{
	rbx_sim_first_copies_look(&client);
	return rbx_sim_first_copies_at(&client, server + 1);
}

static void only_server_that_has_lent_is_spared(void **state)
{
	(void)state;
	assert_false(is_spared(0));
	(void)lend(0, RBX_REPLICA_LIVE);
	assert_true(is_spared(0));
	assert_false(is_spared(1));
	(void)lend(1, RBX_REPLICA_LIVE);
	assert_false(is_spared(0));
	begin();
	assert_false(is_spared(0));
	assert_false(is_spared(1));
}

static void first_copy_is_spared_until_there_is_a_second(void **state)
{
	uint32_t slot;

	(void)state;
	(void)lend(0, RBX_REPLICA_LIVE);
	begin();
	assert_true(is_spared(0));
	slot = lend(1, RBX_REPLICA_REBUILDING);
	assert_true(is_spared(0));
	assert_false(is_spared(1));
	rbx_slab_move(slab, slot, RBX_REPLICA_LIVE);
	assert_false(is_spared(0));
	assert_false(is_spared(1));
}

static void last_copy_of_several_is_not_spared(void **state)
{
	struct rbx_loan loan;
	uint32_t server;

	(void)state;
	(void)lend(0, RBX_REPLICA_LIVE);
	(void)lend(1, RBX_REPLICA_LIVE);
	begin();
	assert_false(is_spared(0));
	assert_true(rbx_slab_server_down(slab, 1));
	assert_false(is_spared(0));
	/* It begins anew. */
	rbx_slab_discard(slab);
	while (rbx_slab_task(slab) == RBX_TASK_GIVE_BACK)
		(void)rbx_slab_give_back(slab, &server, &loan);
	assert_false(is_spared(0));
	(void)lend(0, RBX_REPLICA_LIVE);
	begin();
	assert_true(is_spared(0));
}

/* Nobody else would lend memory for its first write. */
static void only_server_that_is_left_is_spared_while_a_slab_is_blank(void **state)
{
	(void)state;
	assert_false(is_spared(0));
	volume.control.upkeep.servers[1].is_down = true;
	assert_true(is_spared(0));
	assert_false(is_spared(1));
	volume.control.upkeep.servers[1].is_down = false;
	assert_false(is_spared(0));
	servers[1].peer = NULL;
	assert_true(is_spared(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			only_server_that_is_left_is_spared_while_a_slab_is_blank,
			make, end),
		cmocka_unit_test_setup_teardown(
			only_server_that_has_lent_is_spared, make, end),
		cmocka_unit_test_setup_teardown(
			first_copy_is_spared_until_there_is_a_second, make, end),
		cmocka_unit_test_setup_teardown(
			last_copy_of_several_is_not_spared, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
