/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_hostile_test.c - peers that break the protocol of the soft device are
 * cut off, everything posted is flushed, and others are served on.
 */
#include <stdio.h>
#include <unistd.h>

#include "fabric/soft/limits.h"
#include "tests/fabric/bare_socket.h"

/* Each breaks one rule. */
static struct soft_frame bad_frame(const struct test_pair *pair, int which)
{
	struct soft_frame frame = {
		.opcode = SOFT_WRITE,
		.sequence = SOFT_FIRST_SEQUENCE,
		.length_bytes = 16,
		.rkey = pair->target_mr->rkey,
		.remote_addr = (uintptr_t)pair->target_memory,
	};

	switch (which) {
	case 0: frame.opcode = 0; break;
	case 1: frame.opcode = SOFT_OPCODE_LAST + 1; break;
	case 2: frame.sequence++; break;
	case 3: frame.length_bytes = SOFT_MESSAGE_MAX_BYTES + 1; break;
	case 4: frame.opcode = SOFT_SEND; break; /* no credit */
	case 5: /* acknowledges nothing that was sent */
		frame = (struct soft_frame){ .opcode = SOFT_ACK,
					     .sequence = SOFT_FIRST_SEQUENCE };
		break;
	case 6: frame.opcode = SOFT_RESPONSE; break;
	case 7:
		frame = (struct soft_frame){ .opcode = SOFT_ERROR,
					     .status = SOFT_REFUSED_ACCESS,
					     .sequence = SOFT_FIRST_SEQUENCE };
		break;
	case 8: /* only on a local socket */
		frame = (struct soft_frame){ .opcode = SOFT_MAP_ASK };
		break;
	case 9:
		frame = (struct soft_frame){ .opcode = SOFT_MAP_ANSWER };
		break;
	case 10: frame.rkey ^= 0x10000; break;
	case 11: frame.remote_addr--; break;
	case 12:
		frame = (struct soft_frame){ .opcode = SOFT_ACK,
					     .length_bytes = 1 };
		break;
	case 13: frame.status = 1; break;
	case 14: /* nothing wrong with it but this */
		frame = (struct soft_frame){
			.opcode = SOFT_ACK, .sequence = SOFT_FIRST_SEQUENCE - 1,
			.rkey = 1,
		};
		break;
	case 15:
		frame = (struct soft_frame){
			.opcode = SOFT_ACK, .sequence = SOFT_FIRST_SEQUENCE - 1,
			.remote_addr = 1,
		};
		break;
	case 18: frame.flags = SOFT_IMMEDIATE; break; /* no credit */
	case 19: frame.flags = SOFT_INVALIDATE; break; /* is of SEND */
	case 20: frame.immediate = 1; break; /* and does not say so */
	case 21:
		frame.opcode = SOFT_READ;
		frame.flags = SOFT_IMMEDIATE;
		break;
	case 22: /* both, which is one too much */
		frame = (struct soft_frame){
			.opcode = SOFT_SEND, .sequence = SOFT_FIRST_SEQUENCE,
			.rkey = pair->target_mr->rkey,
			.flags = SOFT_IMMEDIATE | SOFT_INVALIDATE,
		};
		break;
	case 23: /* a key, and nothing to do with it */
		frame = (struct soft_frame){
			.opcode = SOFT_SEND, .sequence = SOFT_FIRST_SEQUENCE,
			.rkey = pair->target_mr->rkey,
		};
		break;
	case 24: frame.opcode = SOFT_COMPARE_SWAP; break; /* has no length */
	case 25:
		frame.opcode = SOFT_FETCH_ADD;
		frame.length_bytes = 0;
		frame.flags = SOFT_IMMEDIATE;
		break;
	case 26: /* what is behind it would be the number to swap with */
		frame.opcode = SOFT_FETCH_ADD;
		frame.length_bytes = 0;
		break;
	case 27: frame.flags = 8; break;
	default: /* the test spoils its bytes */
		frame = (struct soft_frame){
			.opcode = SOFT_ACK, .sequence = SOFT_FIRST_SEQUENCE - 1,
		};
	}
	return frame;
}

static bool lacks_credit(int which)
{
	return which == 4 || which == 18;
}

static void rule_breaker_cut_off_and_flushed(void **state)
{
	struct soft_wire_frame wire[4];
	struct soft_frame frame;
	struct test_pair pair;
	struct rbx_qp *qp;
	struct rbx_wc wc;
	int fd, which;

	(void)state;
	test_pair_open(&pair, NULL);
	for (which = 0; which < 28; which++) {
		fd = hostile_connect(&pair, &qp);
		if (!lacks_credit(which))
			test_post_recv(&pair, qp, 77, pair.target_memory, PAGE,
				       pair.target_mr->lkey);
		/* What would be payload would be seen in the memory. */
		memset(wire, 0xaa, sizeof(wire));
		frame = bad_frame(&pair, which);
		soft_frame_encode(&frame, wire);
		if (which == 16)
			wire[0].reserved = 1;
		if (which == 17)
			wire[0].immediate = 1u << 31;
		/* From 14 to 17 nothing else is wrong, nor comes behind it. */
		send(fd, wire, which < 14 || which > 17 ? sizeof(wire) :
							  sizeof(*wire),
		     MSG_NOSIGNAL);
		assert_true(socket_is_closed(fd));
		if (lacks_credit(which))
			test_post_recv(&pair, qp, 77, pair.target_memory, PAGE,
				       pair.target_mr->lkey);
		wc = test_wait(&pair, pair.server_cq);
		assert_ptr_equal(wc.qp, qp);
		assert_int_equal(wc.status, -ECANCELED);
		assert_int_equal(wc.wr_id, 77);
		/* A key that is no good is an error, and told as one. */
		assert_int_equal(qp->cut_off == NULL,
				 which == 10 || which == 11);
		pair.ops->destroy_qp(qp);
		close(fd);
	}
	assert_int_equal(pair.target[0], 0);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* All at once, so that none is answered before the last was looked at. */
static void reads_send(const struct test_pair *pair, int fd, uint32_t count, uint32_t length_bytes)
{
	struct soft_wire_frame wire[16];
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct soft_frame frame = {
			.opcode = SOFT_READ,
			.sequence = SOFT_FIRST_SEQUENCE + i,
			.length_bytes = length_bytes,
			.rkey = pair->target_mr->rkey,
			.remote_addr = (uintptr_t)pair->target_memory,
		};

		soft_frame_encode(&frame, &wire[i]);
	}
	send(fd, wire, count * sizeof(*wire), MSG_NOSIGNAL);
}

/* Whatever it says of its depth, it is given no more than its target allows. Not even of READs of
 * nothing, which need no key. */
static void reads_beyond_what_is_allowed_cut_off(void **state)
{
	struct soft_wire_frame answers[4];
	struct test_pair pair;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = hostile_connect_with(&pair, &qp, SOFT_SEND_DEPTH_MAX, 4);
	reads_send(&pair, fd, 4, 0);
	assert_int_equal(recv(fd, answers, sizeof(answers), MSG_WAITALL), sizeof(answers));
	close(fd);
	pair.ops->destroy_qp(qp);
	fd = hostile_connect_with(&pair, &qp, SOFT_SEND_DEPTH_MAX, 4);
	reads_send(&pair, fd, 5, 0);
	assert_true(socket_is_closed(fd));
	close(fd);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* More reads than the depth it said: bounded, not stored. */
static void too_many_reads_cut_off(void **state)
{
	struct test_pair pair;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = hostile_connect(&pair, &qp);
	reads_send(&pair, fd, 8 + 1, TARGET_BYTES);
	assert_true(socket_is_closed(fd));
	close(fd);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* An atomic as it goes over the wire. */
struct atomic_bytes {
	struct soft_wire_frame frame;
	struct soft_wire_atomic body;
};

static struct rbx_mr *region(struct test_pair *pair, uint32_t rights)
{
	struct rbx_mr_init init = {
		.addr = pair->target_memory,
		.length_bytes = PAGE,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | rights,
		.memory_fd = -1,
	};
	struct rbx_mr *mr;

	assert_int_equal(pair->ops->register_memory(pair->server_device, &init,
						    1, &mr, NULL), 0);
	return mr;
}

static struct atomic_bytes add_one(const struct rbx_mr *mr, uint32_t number,
				   uint64_t offset)
{
	const struct soft_frame frame = {
		.opcode = SOFT_FETCH_ADD,
		.sequence = SOFT_FIRST_SEQUENCE + number,
		.rkey = mr->rkey,
		.remote_addr = (uintptr_t)mr->addr + offset,
		.flags = SOFT_ACK_WANTED,
	};
	const struct soft_atomic one = { .compare_add = 1 };
	struct atomic_bytes bytes;

	soft_frame_encode(&frame, &bytes.frame);
	soft_atomic_encode(&one, &bytes.body);
	return bytes;
}

/* All in one packet: no answer leaves before the last of them is looked at. */
static void too_many_atomics_cut_off_and_not_done(void **state)
{
	struct atomic_bytes bytes[8 + 1]; /* one more than its depth */
	struct test_pair pair;
	struct rbx_mr *mr;
	struct rbx_qp *qp;
	uint64_t value;
	uint32_t i;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	mr = region(&pair, RBX_REMOTE_ATOMIC);
	fd = hostile_connect(&pair, &qp);
	for (i = 0; i < 9; i++)
		bytes[i] = add_one(mr, i, 0);
	send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
	assert_true(socket_is_closed(fd));
	memcpy(&value, pair.target, sizeof(value));
	assert_true(value == 8);
	close(fd);
	pair.ops->destroy_qp(qp);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* One byte at a time: nothing is done before all of it is there. */
static void atomic_in_bytes_is_done_once(void **state)
{
	struct atomic_bytes bytes;
	struct test_pair pair;
	struct soft_wire_frame answer;
	struct rbx_mr *mr;
	struct rbx_qp *qp;
	uint64_t value;
	size_t i;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	mr = region(&pair, RBX_REMOTE_ATOMIC);
	fd = hostile_connect(&pair, &qp);
	value = 41;
	memcpy(pair.target, &value, sizeof(value));
	bytes = add_one(mr, 0, 0);
	for (i = 0; i < sizeof(bytes); i++)
		assert_int_equal(send(fd, (uint8_t *)&bytes + i, 1, 0), 1);
	assert_int_equal(recv(fd, &answer, sizeof(answer), MSG_WAITALL),
			 sizeof(answer));
	assert_int_equal(answer.opcode, SOFT_RESPONSE);
	assert_int_equal(recv(fd, &value, sizeof(value), MSG_WAITALL),
			 sizeof(value));
	assert_true(value == 41);
	memcpy(&value, pair.target, sizeof(value));
	assert_true(value == 42);
	close(fd);
	pair.ops->destroy_qp(qp);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* Refused as a key is that is no good: told why, and not cut off. */
static void expect_refused(struct test_pair *pair, const void *bytes,
			   size_t count, int receive_status)
{
	struct soft_wire_frame answer;
	struct soft_frame frame;
	struct rbx_qp *qp;
	int fd = hostile_connect(pair, &qp);

	test_post_recv(pair, qp, 77, pair->target_memory + PAGE, PAGE,
		       pair->target_mr->lkey);
	send(fd, bytes, count, MSG_NOSIGNAL);
	do { /* an acknowledgement may tell of credit first */
		assert_int_equal(recv(fd, &answer, sizeof(answer), MSG_WAITALL),
				 sizeof(answer));
		assert_null(soft_frame_decode((uint8_t *)&answer, &frame));
	} while (frame.opcode == SOFT_ACK);
	assert_int_equal(frame.opcode, SOFT_ERROR);
	assert_int_equal(frame.status, SOFT_REFUSED_ACCESS);
	assert_int_equal(test_wait(pair, pair->server_cq).status,
			 receive_status);
	assert_null(qp->cut_off);
	close(fd);
	pair->ops->destroy_qp(qp);
}

static void expect_access_refused(struct test_pair *pair, const void *bytes,
				  size_t count)
{
	expect_refused(pair, bytes, count, -ECANCELED);
}

static void operation_without_right_refused(void **state)
{
	struct soft_frame end_key = {
		.opcode = SOFT_SEND,
		.sequence = SOFT_FIRST_SEQUENCE,
		.flags = SOFT_INVALIDATE,
	};
	struct soft_wire_frame wire;
	struct atomic_bytes bytes;
	struct test_pair pair;
	struct rbx_mr *mr;

	(void)state;
	test_pair_open(&pair, NULL);
	mr = region(&pair, RBX_REMOTE_ATOMIC);
	bytes = add_one(mr, 0, 4); /* not aligned */
	expect_access_refused(&pair, &bytes, sizeof(bytes));
	bytes = add_one(mr, 0, PAGE);
	expect_access_refused(&pair, &bytes, sizeof(bytes));
	bytes = add_one(pair.target_mr, 0, 0);
	expect_access_refused(&pair, &bytes, sizeof(bytes));
	end_key.rkey = mr->rkey;
	soft_frame_encode(&end_key, &wire);
	expect_access_refused(&pair, &wire, sizeof(wire));
	end_key.rkey = 0; /* the lkey of all memory, and no key */
	soft_frame_encode(&end_key, &wire);
	expect_access_refused(&pair, &wire, sizeof(wire));
	assert_int_equal(pair.target[0], 0);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* It does not wait for its read, as it ought to: no byte comes of an ended key. */
static void read_of_a_key_ended_behind_it_refused(void **state)
{
	const struct soft_frame read = {
		.opcode = SOFT_READ,
		.sequence = SOFT_FIRST_SEQUENCE,
		.length_bytes = PAGE,
	};
	const struct soft_frame end_key = {
		.opcode = SOFT_SEND,
		.sequence = SOFT_FIRST_SEQUENCE + 1,
		.flags = SOFT_INVALIDATE,
	};
	struct soft_frame frames[2] = { read, end_key };
	struct soft_wire_frame wire[2];
	struct test_pair pair;
	struct rbx_mr *mr;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	mr = region(&pair, RBX_REMOTE_INVALIDATE);
	frames[0].remote_addr = (uintptr_t)mr->addr;
	for (i = 0; i < 2; i++) {
		frames[i].rkey = mr->rkey;
		soft_frame_encode(&frames[i], &wire[i]);
	}
	expect_refused(&pair, wire, sizeof(wire), 0); /* the message came */
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* A peer that dies in mid-payload: no completion, the memory's owner goes on. */
static void half_a_payload_then_death_flushes(void **state)
{
	struct soft_frame frame = { .opcode = SOFT_SEND,
				    .sequence = SOFT_FIRST_SEQUENCE,
				    .length_bytes = 1000 };
	uint8_t bytes[SOFT_FRAME_BYTES + 500] = { 0 };
	struct test_pair pair;
	struct rbx_qp *qp;
	struct rbx_wc wc;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = hostile_connect(&pair, &qp);
	test_post_recv(&pair, qp, 5, pair.target_memory, PAGE, pair.target_mr->lkey);
	soft_frame_encode(&frame, (struct soft_wire_frame *)bytes);
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	close(fd);
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, -ECANCELED);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_breaker_cut_off_and_flushed),
		cmocka_unit_test(too_many_reads_cut_off),
		cmocka_unit_test(reads_beyond_what_is_allowed_cut_off),
		cmocka_unit_test(too_many_atomics_cut_off_and_not_done),
		cmocka_unit_test(atomic_in_bytes_is_done_once),
		cmocka_unit_test(operation_without_right_refused),
		cmocka_unit_test(read_of_a_key_ended_behind_it_refused),
		cmocka_unit_test(half_a_payload_then_death_flushes),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
