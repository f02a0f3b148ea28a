/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_test.c - pieces on their way through a volume: what is sent together, what
 * ends by whom, and what is counted. slab_way_test.c has the single steps.
 */
#include "tests/core/scripted_host.h"

static uint8_t out[HOST_CELL_BYTES], in[HOST_CELL_BYTES];

static void flow_written_bytes_are_read(void **state)
{
	struct host *host = host_make(2, 2, 3);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	memset(out, 7, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, HOST_SLAB_BYTES + 512, out, 1024);
	assert_int_equal(host->submits_count, 2); /* a replica each */
	assert_null(host->ended.first);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_start(host, RBX_PIECE_READ, HOST_SLAB_BYTES, in, 2048);
	assert_int_equal(host->submits_count, 3); /* one of them */
	host_poll(host);
	assert_int_equal(in[511], 0);
	assert_memory_equal(in + 512, out, 1024);
	assert_int_equal(in[512 + 1024], 0);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

static void flow_parts_of_a_server_are_sent_together(void **state)
{
	struct host *host = host_make(1, 2, 2);
	struct rbx_piece_list pieces = { 0 };
	struct rbx_node *node;
	uint32_t i = 0;

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(rbx_piece_pool_take(&host->flow.pool, 5, &pieces), 0);
	for (node = pieces.first; node; node = node->next) {
		struct rbx_piece *piece = rbx_piece_of(node);

		piece->kind = RBX_PIECE_WRITE;
		piece->local_addr = host_device_addr(out);
		(void)rbx_volume_map_aim(host->flow.map, piece,
					 i++ * HOST_CELL_BYTES, 512);
	}
	rbx_flow_start(&host->flow, &pieces);
	assert_int_equal(host->submits_count, 2);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 5);
	assert_int_equal(host->submits_count, 2);
	host_free(host);
}

static void flow_piece_of_dead_slab_is_ended_by_who_polls(void **state)
{
	struct host *host = host_make(1, 1, 1);

	(void)state;
	host_start(host, RBX_PIECE_READ, 0, in, 512);
	assert_null(host->ended.first);
	assert_int_equal(host->submits_count, 0);
	assert_true(host_poll(host));
	assert_int_equal(host_ended(host, -EIO), 1);
	host_free(host);
}

static void flow_server_dies_read_goes_to_another(void **state)
{
	struct host *host = host_make(1, 2, 2);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_start(host, RBX_PIECE_READ, 0, in, 512);
	host->servers[rbx_part_of(host->sent_first)->server].down = true;
	host->wakes_count = 0;
	host_poll(host);
	assert_int_equal(host->wakes_count, 1); /* a replica was lost */
	assert_int_equal(host->counters.failovers, 1);
	assert_null(host->ended.first);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

static struct rbx_fragment *never_called(struct rbx_fragment *list)
{
	fail();
	return list;
}

static void flow_takes_its_own_parts_from_a_list(void **state)
{
	struct host *host = host_make(1, 1, 1);
	struct rbx_fragment foreign = { .done = never_called };
	struct rbx_fragment *sent;

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_start(host, RBX_PIECE_WRITE, 0, out, 512);
	sent = host->sent_first;
	host->sent_first = NULL;
	sent->node.next = &foreign.node;
	assert_ptr_equal(sent->done(sent), &foreign);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* A peer may not say what only a checksum can. */
static void flow_peer_says_ebadmsg_replica_is_lost(void **state)
{
	struct host *host = host_make(1, 2, 2);
	struct rbx_fragment *sent;

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_start(host, RBX_PIECE_READ, 0, in, 512);
	sent = host->sent_first;
	host->sent_first = NULL;
	sent->status = -EBADMSG;
	sent->done(sent);
	assert_int_equal(rbx_slab_health(host_slab(host, 0)),
			 RBX_SLAB_LACKING);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host->counters.checksum_errors, 0);
	host_free(host);
}

/* What was written is there, though not on all replicas: it is found, and counted
 * that it was looked for. With one replica it is an error. */
static void flow_bytes_that_changed_are_never_read(void **state)
{
	uint32_t replicas;

	(void)state;
	for (replicas = 1; replicas <= 2; replicas++) {
		struct host *host = host_make_with_checksums(1, replicas, 2);
		struct host_server *read_first;

		assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
		memset(out, 7, sizeof(out));
		host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
		host_poll(host);
		assert_int_equal(host_ended(host, 0), 1);
		host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
		read_first = &host->servers[rbx_part_of(host->sent_first)->server];
		read_first->memory[0][4097] ^= 1;
		while (host_poll(host))
			;
		assert_int_equal(host_ended(host, replicas == 1 ? -EIO : 0), 1);
		if (replicas > 1)
			assert_memory_equal(in, out, sizeof(out));
		assert_int_equal(host->counters.checksum_errors, 1);
		assert_int_equal(host->counters.failovers, replicas - 1);
		host_free(host);
	}
}

/* Then it is read although the one that had it is gone. */
static void flow_bad_copy_is_repaired_by_who_reads(void **state)
{
	uint32_t bad;

	(void)state;
	for (bad = 0; bad < 2; bad++) {
		struct host *host = host_make_with_checksums(1, 2, 2);
		uint32_t i;

		assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
		host_write_cell(host, 7);
		host_poll(host);
		assert_int_equal(host_ended(host, 0), 1);
		host->servers[bad].memory[0][RBX_PAGE_BYTES + 1] ^= 1;
		host->servers[bad].memory[0][1] ^= 1;
		for (i = 0; i < 4; i++)
			host_assert_cell(host, 7);
		/* One of them is never read: which one is the map's choice. */
		if (host->counters.checksum_errors) {
			assert_int_equal(host->counters.checksum_errors, 2);
			assert_int_equal(host->counters.checksum_repairs, 1);
			assert_int_equal(host_census(host).whole, 1);
			host_server_dies(host, !bad);
			host_assert_cell(host, 7);
		}
		host_free(host);
	}
}

/* One that cannot be repaired is lost as ever, and one that this machine cannot send
 * to is not; who reads has what was read. */
static void flow_repair_that_fails_loses_the_copy_if_it_is_to_blame(void **state)
{
	static const int32_t statuses[] = { -EFAULT, -EREMOTEIO };
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct host *host = host_make_with_checksums(1, 2, 2);
		struct rbx_fragment *sent;
		uint32_t bad;

		assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
		host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
		bad = rbx_part_of(host->sent_first)->server;
		host->servers[bad].memory[0][1] ^= 1;
		while (host->counters.checksum_repairs == 0)
			host_poll(host);
		assert_null(host->ended.first);
		sent = host->sent_first;
		host->sent_first = NULL;
		assert_int_equal(rbx_part_of(sent)->server, bad);
		sent->status = statuses[i];
		sent->done(sent);
		assert_int_equal(host_ended(host, 0), 1);
		assert_int_equal(host_census(host).whole, i == 0);
		host_free(host);
	}
}

/* What is bad everywhere is copied as it is, and never becomes the truth. */
static void flow_rebuild_of_a_damaged_page_stays_damaged(void **state)
{
	struct host *host = host_make_with_checksums(1, 2, 3);
	uint32_t server;

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_write_cell(host, 7);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	for (server = 0; server < 3; server++)
		if (host_lent_count(host, server))
			host->servers[server].memory[0][1] ^= 1;
	for (server = 0; !host_lent_count(host, server); server++)
		;
	host_server_dies(host, server);
	host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EIO), 1);
	/* What is written is good on all of them again. */
	host_write_cell(host, 8);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_assert_cell(host, 8);
	host_free(host);
}

/* Peers of a device share a poller, and what one poll finds is one list. */
static void flow_parts_of_two_volumes_are_done_together(void **state)
{
	struct host *hosts[2] = { host_make(1, 1, 1), host_make(1, 1, 1) };
	struct rbx_fragment *first = NULL, *last = NULL;
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct host *host = hosts[i % 2];
		struct rbx_fragment *sent;

		if (i < 2)
			assert_int_equal(
				rbx_upkeep_borrow_all(&host->upkeep), 0);
		host_start(host, RBX_PIECE_READ, i * HOST_CELL_BYTES, in, 512);
		sent = host->sent_first;
		host->sent_first = NULL;
		rbx_fragment_append(&first, &last, sent, sent);
	}
	first->done(first);
	for (i = 0; i < 2; i++) {
		assert_int_equal(host_ended(hosts[i], 0), 2);
		host_free(hosts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_written_bytes_are_read),
		cmocka_unit_test(flow_parts_of_a_server_are_sent_together),
		cmocka_unit_test(flow_piece_of_dead_slab_is_ended_by_who_polls),
		cmocka_unit_test(flow_server_dies_read_goes_to_another),
		cmocka_unit_test(flow_takes_its_own_parts_from_a_list),
		cmocka_unit_test(flow_peer_says_ebadmsg_replica_is_lost),
		cmocka_unit_test(flow_bytes_that_changed_are_never_read),
		cmocka_unit_test(flow_bad_copy_is_repaired_by_who_reads),
		cmocka_unit_test(
			flow_repair_that_fails_loses_the_copy_if_it_is_to_blame),
		cmocka_unit_test(flow_rebuild_of_a_damaged_page_stays_damaged),
		cmocka_unit_test(flow_parts_of_two_volumes_are_done_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
