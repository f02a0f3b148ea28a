/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach_test.c - data queue pairs: who may attach one, and how many.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fabric/soft/limits.h"
#include "tests/fabric/bare_socket.h"
#include "tests/server/raw_client.h"

/* ---- Queue pairs -----------------------------------------------------------*/

static void attach_refused_for(struct world *world, const void *bytes,
			       size_t length, uint32_t expected)
{
	struct raw_client raw;
	uint32_t reason = 0;

	assert_int_equal(raw_client_connect(&raw, world, bytes, length,
					    &reason),
			 -EBUSY);
	assert_int_equal(reason, expected);
	raw_client_leave(&raw);
}

static void queue_pair_without_right_is_refused(void **state)
{
	struct rbx_wire_attach attach = { .kind = RBX_WIRE_ATTACH_DATA };
	/* With zeros behind, as InfiniBand's connection manager delivers it. */
	uint8_t padded[RBX_CONNECT_DATA_MAX] = { 0 };
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	struct raw_client owner, attached;
	struct world world;
	uint32_t reason = 0;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&owner, &world);
	raw_client_enter(&owner);

	attach_refused_for(&world, "hello", 5, RBX_REASON_MALFORMED);
	attach_refused_for(&world, NULL, 0, RBX_REASON_MALFORMED);
	attach.session_id = owner.welcome.welcome.session_id ^ 1;
	attach.serial = 1;
	rbx_wire_attach_encode(&attach, bytes);
	attach_refused_for(&world, bytes, sizeof(bytes),
			   RBX_REASON_STALE_SESSION);
	attach.session_id ^= 1;
	rbx_wire_attach_encode(&attach, bytes); /* without mac */
	attach_refused_for(&world, bytes, sizeof(bytes),
			   RBX_REASON_WRONG_SECRET);
	rbx_proof_of_attach(&owner.connection_key, &attach, attach.mac);
	rbx_wire_attach_encode(&attach, bytes);
	bytes[16]++; /* another serial than the mac is of */
	attach_refused_for(&world, bytes, sizeof(bytes),
			   RBX_REASON_WRONG_SECRET);
	bytes[16]--;
	memcpy(padded, bytes, sizeof(bytes));
	padded[sizeof(padded) - 1] = 1;
	attach_refused_for(&world, padded, sizeof(padded),
			   RBX_REASON_MALFORMED);
	padded[sizeof(padded) - 1] = 0;
	assert_int_equal(raw_client_connect(&attached, &world, padded,
					    sizeof(padded), &reason),
			 0);
	attach_refused_for(&world, bytes, sizeof(bytes), RBX_REASON_REPLAYED);
	bytes[4]++;
	attach_refused_for(&world, bytes, sizeof(bytes), RBX_REASON_VERSION);
	raw_client_leave(&attached);
	raw_client_leave(&owner);
	world_serves_on(&world);
	world_stop(&world);
}

/* A connection by hand, with these private data, that claims all that it can. It sends `count`
 * READs of nothing at once; whether it is cut off for that. */
static bool reads_are_too_many(struct world *world, const void *private_data, size_t bytes,
			       uint32_t count)
{
	static struct soft_wire_frame wire[RBX_SEND_DEPTH + 1];
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.private_bytes = (uint8_t)bytes,
		.send_depth_count = SOFT_SEND_DEPTH_MAX,
	};
	struct rbx_listener listener = { 0 };
	const size_t bytes_count = count * sizeof(*wire);
	struct soft_wire_frame answer;
	uint32_t i, answers_count = 0;
	int fd;

	strcpy(listener.address, rbx_server_address(world->server));
	memcpy(hello.private_data, private_data, bytes);
	fd = socket_open(&listener);
	hello_send(fd, &hello);
	hello_hear(fd, &hello);
	assert_int_equal(hello.type, SOFT_ACCEPT);
	for (i = 0; i < count; i++) {
		const struct soft_frame frame = { .opcode = SOFT_READ,
						  .sequence = SOFT_FIRST_SEQUENCE + i };

		soft_frame_encode(&frame, &wire[i]);
	}
	assert_int_equal(send(fd, wire, bytes_count, MSG_NOSIGNAL), bytes_count);
	while (answers_count < count &&
	       recv(fd, &answer, sizeof(answer), MSG_WAITALL) == sizeof(answer))
		answers_count += answer.opcode == SOFT_RESPONSE;
	close(fd);
	return answers_count < count;
}

/* Each of them takes memory of the server, and no quota counts that. */
static void reads_at_a_time_are_bounded(void **state)
{
	struct rbx_wire_attach attach = { .kind = RBX_WIRE_ATTACH_CONTROL };
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	struct raw_client owner;
	struct world world;
	uint32_t extra;

	(void)state;
	world_begin(&world);
	rbx_wire_attach_encode(&attach, bytes);
	assert_true(reads_are_too_many(&world, bytes, sizeof(bytes), 2));
	raw_client_arrive(&owner, &world);
	raw_client_enter(&owner);
	for (extra = 0; extra < 2; extra++) {
		attach = (struct rbx_wire_attach){
			.kind = RBX_WIRE_ATTACH_DATA,
			.session_id = owner.welcome.welcome.session_id,
			.serial = extra + 1,
		};
		rbx_proof_of_attach(&owner.connection_key, &attach, attach.mac);
		rbx_wire_attach_encode(&attach, bytes);
		assert_int_equal(reads_are_too_many(&world, bytes, sizeof(bytes),
						    RBX_SEND_DEPTH + extra), extra);
	}
	raw_client_leave(&owner);
	world_serves_on(&world);
	world_stop(&world);
}

static void queue_pairs_of_a_client_are_bounded(void **state)
{
	struct rbx_qp *qps[RBX_QUEUE_PAIRS_MAX];
	struct rbx_session *session;
	const struct rbx_qp_init *init;
	struct rbx_qp_init one_more;
	struct rbx_qp *qp;
	struct world world;
	uint32_t i;
	int err;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	for (i = 0; i < RBX_QUEUE_PAIRS_MAX; i++)
		qps[i] = world_qp(&world, session);
	one_more = (struct rbx_qp_init){
		.send_cq = world.cq,
		.recv_cq = world.cq,
		.send_depth_count = 1,
		.recv_depth_count = 1,
		.max_sge = 1,
	};
	init = &one_more;
	assert_int_equal(rbx_session_connect_qp(session, init, &qp), -EBUSY);
	/* The end of one is noticed, and makes room. */
	world.choice.ops->destroy_qp(qps[0]);
	do {
		err = rbx_session_connect_qp(session, init, &qps[0]);
	} while (err == -EBUSY);
	assert_int_equal(err, 0);
	for (i = 0; i < RBX_QUEUE_PAIRS_MAX; i++)
		world.choice.ops->destroy_qp(qps[i]);
	rbx_session_close(session);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_pair_without_right_is_refused),
		cmocka_unit_test(reads_at_a_time_are_bounded),
		cmocka_unit_test(queue_pairs_of_a_client_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
