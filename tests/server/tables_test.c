/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tables_test.c - how many clients fit, and entries that come back are taken first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/state.h"
#include "tests/server/world.h"

/* A server of which there are only the tables, on a device of which only this much
 * is known. */
static struct rbx_server *tables_make(struct rbx_device *device,
				      uint32_t clients_max, uint32_t max_cqe)
{
	struct rbx_server *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	*device = (struct rbx_device){ .caps.max_cqe = max_cqe };
	s->device = device;
	s->options.clients_max = clients_max;
	assert_int_equal(rbx_tables_init(s), 0);
	return s;
}

static void tables_end(struct rbx_server *s)
{
	rbx_tables_destroy(s);
	free(s);
}

static void as_many_clients_as_a_completion_queue_holds(void **state)
{
	static const uint32_t wanted[] = { 1, 128, RBX_CLIENTS_DEFAULT,
					   RBX_CLIENTS_MAX };
	static const uint32_t queues[] = { 4096, 32767, 1u << 22 };
	struct rbx_device device;
	struct rbx_server *s;

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 3; j++) {
			s = tables_make(&device, wanted[i], queues[j]);
			assert_in_range(s->clients_max, 1, wanted[i]);
			assert_true(RBX_COMPLETIONS_OF(s->clients_max) <=
				    queues[j]);
			/* And not fewer than that. */
			assert_true(s->clients_max == wanted[i] ||
				    RBX_COMPLETIONS_OF(s->clients_max + 1) >
					    queues[j]);
			tables_end(s);
		}
	/* Unless somebody says a number; and that on Soft-RoCE. */
	s = tables_make(&device, 0, 1u << 22);
	assert_int_equal(s->clients_max, RBX_CLIENTS_DEFAULT);
	tables_end(s);
	s = tables_make(&device, 0, 32767);
	assert_int_equal(s->clients_max, 383);
	tables_end(s);
}

static int pins_nothing(struct rbx_device *device, const struct rbx_mr_init *inits,
			size_t count, struct rbx_mr **mrs, char *error)
{
	(void)device;
	(void)inits;
	(void)count;
	(void)mrs;
	strcpy(error, "RLIMIT_MEMLOCK is 64 KiB");
	return -ENOMEM;
}

/* And not when the first client comes. */
static void server_that_may_pin_nothing_does_not_begin(void **state)
{
	static const struct rbx_fabric_ops ops = {
		.register_memory = pins_nothing,
	};
	struct rbx_device device;
	struct rbx_server *s = tables_make(&device, 3, 1u << 22);

	(void)state;
	s->fabric.ops = &ops;
	assert_int_equal(rbx_tables_begin(s), -ENOMEM);
	assert_non_null(strstr(rbx_last_error(), "MEMLOCK"));
	assert_null(rbx_connection_take(s));
	tables_end(s);
}

static void entries_that_came_back_are_taken_first(void **state)
{
	struct rbx_client *first, *second;
	struct rbx_device device;
	struct rbx_server *s = tables_make(&device, 3, 1u << 22);

	(void)state;
	first = rbx_client_take(s);
	second = rbx_client_take(s);
	assert_ptr_not_equal(first, second);
	rbx_client_give(s, first);
	assert_ptr_equal(rbx_client_take(s), first);
	assert_int_equal(s->clients_used, 2);
	assert_non_null(rbx_client_take(s));
	assert_null(rbx_client_take(s));
	tables_end(s);
}

static void queue_pairs_of_clients_stand_apart(void **state)
{
	struct rbx_device device;
	struct rbx_server *s = tables_make(&device, 2, 1u << 22);
	struct rbx_client *first = rbx_client_take(s);
	struct rbx_client *second = rbx_client_take(s);

	(void)state;
	assert_ptr_equal(rbx_data_qps_of(s, first) + RBX_QUEUE_PAIRS_MAX,
			 rbx_data_qps_of(s, second));
	tables_end(s);
}

/* Half open ones, of untrusted clients and of clients, in any order of their ends. */
static void half_open_ones_leave_their_list(void **state)
{
	struct rbx_connection connections[3] = { 0 };
	struct rbx_device device;
	struct rbx_server *s = tables_make(&device, 2, 1u << 22);
	struct rbx_client *client = rbx_client_take(s);

	(void)state;
	rbx_id_map_put(&s->sessions, 7, rbx_client_index(s, client));
	connections[1].session_id = 7;
	for (int i = 0; i < 3; i++)
		rbx_half_open_join(s, &connections[i]);
	assert_int_equal(s->untrusted.count, 2);
	assert_int_equal(s->resumers.count, 1);
	assert_ptr_equal(client->attempt, &connections[1]);
	rbx_half_open_part(s, &connections[0]);
	assert_ptr_equal(s->untrusted.first, &connections[2]);
	assert_null(connections[2].next);
	rbx_half_open_part(s, &connections[2]);
	assert_null(s->untrusted.first);
	rbx_half_open_part(s, &connections[1]);
	assert_null(s->resumers.first);
	assert_null(client->attempt);
	assert_int_equal(s->untrusted.count + s->resumers.count, 0);
	tables_end(s);
}

/* What was open has a place beside the attempt, and when its session ends one of an
 * untrusted client. */
static void one_that_leaves_is_no_attempt(void **state)
{
	struct rbx_connection attempt = { .session_id = 7 };
	struct rbx_connection leaving = {
		.session_id = 7,
		.state = RBX_CONNECTION_OPEN,
	};
	struct rbx_device device;
	struct rbx_server *s = tables_make(&device, 2, 1u << 22);
	struct rbx_client *client = rbx_client_take(s);

	(void)state;
	rbx_id_map_put(&s->sessions, 7, rbx_client_index(s, client));
	rbx_half_open_join(s, &attempt);
	rbx_half_open_join(s, &leaving);
	leaving.state = RBX_CONNECTION_CLOSING;
	assert_ptr_equal(client->attempt, &attempt);
	assert_ptr_equal(client->leaving, &leaving);
	assert_int_equal(s->resumers.count, 2);
	rbx_half_open_orphan(s, &leaving);
	assert_null(client->leaving);
	assert_ptr_equal(client->attempt, &attempt);
	assert_ptr_equal(s->resumers.first, &attempt);
	assert_ptr_equal(s->untrusted.first, &leaving);
	assert_int_equal(s->untrusted.count, 1);
	rbx_half_open_part(s, &leaving);
	assert_int_equal(s->untrusted.count, 0);
	tables_end(s);
}

/* What a completion is about comes back out of 64 bits, at the ends of its ranges. */
static void names_of_work_are_kept(void **state)
{
	const struct rbx_wr_name name = {
		.kind = RBX_WR_DATA_RECV,
		.slot = RBX_CONTROL_BUFFERS - 1,
		.index = RBX_CLIENTS_MAX * RBX_QUEUE_PAIRS_MAX - 1,
		.generation = UINT32_MAX,
	};
	struct rbx_wr_name again = rbx_wr_name_unpack(rbx_wr_name_pack(name));

	(void)state;
	assert_int_equal(again.kind, name.kind);
	assert_int_equal(again.slot, name.slot);
	assert_int_equal(again.index, name.index);
	assert_int_equal(again.generation, name.generation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_clients_as_a_completion_queue_holds),
		cmocka_unit_test(server_that_may_pin_nothing_does_not_begin),
		cmocka_unit_test(entries_that_came_back_are_taken_first),
		cmocka_unit_test(queue_pairs_of_clients_stand_apart),
		cmocka_unit_test(half_open_ones_leave_their_list),
		cmocka_unit_test(one_that_leaves_is_no_attempt),
		cmocka_unit_test(names_of_work_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
