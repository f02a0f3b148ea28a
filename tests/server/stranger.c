/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stranger.c - see stranger.h. */
#include "tests/server/stranger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint8_t *receive_buffer(struct stranger *stranger, uint64_t number)
{
	return stranger->buffers +
	       (STRANGER_SENDS + number) * STRANGER_BUFFER_BYTES;
}

static void stranger_prepare(struct stranger *stranger, struct world *world)
{
	const size_t size = (STRANGER_SENDS + STRANGER_RECEIVES) *
			    STRANGER_BUFFER_BYTES;
	const struct rbx_fabric_ops *ops = world->choice.ops;
	struct rbx_mr_init init = {
		.length_bytes = size,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};

	memset(stranger, 0, sizeof(*stranger));
	stranger->world = world;
	stranger->buffers = aligned_alloc(4096, size);
	assert_non_null(stranger->buffers);
	init.addr = stranger->buffers;
	assert_int_equal(ops->register_memory(world->device, &init, 1,
					      &stranger->mr, NULL),
			 0);
	assert_int_equal(ops->create_cq(world->device, 64, &stranger->cq, NULL),
			 0);
}

static void receives_post(struct stranger *stranger)
{
	const struct rbx_fabric_ops *ops = stranger->world->choice.ops;
	struct rbx_recv_wr *bad;
	uint64_t i;

	for (i = 0; i < STRANGER_RECEIVES; i++) {
		const struct rbx_sge buffer = {
			.addr = (uintptr_t)receive_buffer(stranger, i),
			.length_bytes = STRANGER_BUFFER_BYTES,
			.lkey = stranger->mr->lkey,
		};
		struct rbx_recv_wr wr = {
			.wr_id = i,
			.sges = &buffer,
			.sge_count = 1,
		};

		assert_int_equal(ops->post_recv(stranger->qp, &wr, &bad), 0);
	}
}

static int stranger_dial(struct stranger *stranger, const void *private_data,
			 size_t length_bytes, uint32_t *reason)
{
	struct world *world = stranger->world;
	uint8_t reply[RBX_REJECT_DATA_MAX];
	struct rbx_connect_init connect = {
		.address = rbx_server_address(world->server),
		.timeout_ms = WORLD_WAIT_MS,
		.private_data = private_data,
		.private_data_bytes = length_bytes,
		.reply_data = reply,
		.reply_data_max_bytes = sizeof(reply),
	};
	struct rbx_qp_init init = {
		.send_depth_count = 64,
		.recv_depth_count = STRANGER_RECEIVES,
		.max_sge = 1,
	};
	int err;

	init.send_cq = init.recv_cq = stranger->cq;
	err = world->choice.ops->connect(world->device, &init, &connect,
					 &stranger->qp, NULL);
	if (err) {
		stranger->qp = NULL;
		*reason = rbx_wire_refusal_decode(reply,
						  connect.reply_data_bytes);
	} else {
		receives_post(stranger);
	}
	return err;
}

int stranger_connect(struct stranger *stranger, struct world *world,
		     const void *private_data, size_t length_bytes,
		     uint32_t *reason)
{
	stranger_prepare(stranger, world);
	return stranger_dial(stranger, private_data, length_bytes, reason);
}

static void control_dial(struct stranger *stranger, uint64_t session_id)
{
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_CONTROL,
		.session_id = session_id,
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	uint32_t reason = 0;

	rbx_wire_attach_encode(&attach, bytes);
	assert_int_equal(stranger_dial(stranger, bytes, sizeof(bytes), &reason),
			 0);
}

void stranger_arrive(struct stranger *stranger, struct world *world)
{
	stranger_arrive_to_resume(stranger, world, 0);
}

void stranger_arrive_to_resume(struct stranger *stranger, struct world *world,
			       uint64_t session_id)
{
	stranger_prepare(stranger, world);
	control_dial(stranger, session_id);
}

void stranger_arrive_beside(struct stranger *stranger,
			    const struct stranger *other)
{
	*stranger = (struct stranger){
		.world = other->world,
		.cq = other->cq,
		.is_guest = true,
		.buffers = other->buffers,
		.mr = other->mr,
	};
	control_dial(stranger, 0);
}

void stranger_leave(struct stranger *stranger)
{
	const struct rbx_fabric_ops *ops = stranger->world->choice.ops;

	if (stranger->qp)
		ops->destroy_qp(stranger->qp);
	if (stranger->is_guest)
		return;
	ops->destroy_cq(stranger->cq);
	ops->deregister_memory(stranger->world->device, &stranger->mr, 1);
	free(stranger->buffers);
}

void stranger_send_bytes(struct stranger *stranger, const void *bytes,
			 size_t length_bytes)
{
	uint8_t *buffer = stranger->buffers +
			  stranger->sends_count * STRANGER_BUFFER_BYTES;
	const struct rbx_sge sge = {
		.addr = (uintptr_t)buffer,
		.length_bytes = (uint32_t)length_bytes,
		.lkey = stranger->mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
	};

	assert_true(length_bytes <= STRANGER_BUFFER_BYTES);
	assert_true(stranger->sends_count++ < STRANGER_SENDS);
	memcpy(buffer, bytes, length_bytes);
	assert_int_equal(stranger->world->choice.ops->post_send(stranger->qp,
								&wr, &bad),
			 0);
}

void stranger_send(struct stranger *stranger, struct rbx_wire_message *message)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];

	if (!message->request_id)
		message->request_id = ++stranger->next_id;
	stranger_send_bytes(stranger, bytes, rbx_wire_encode(message, bytes));
}

bool stranger_hear(struct stranger *stranger, struct rbx_wire_message *message)
{
	const struct rbx_fabric_ops *ops = stranger->world->choice.ops;
	struct rbx_wc wc;
	int spins;

	for (spins = 0; spins < WORLD_WAIT_MS * 10; spins++) {
		if (ops->poll(stranger->cq, &wc, 1) != 1) {
			usleep(100);
			continue;
		}
		if (wc.status)
			return false;
		if (wc.opcode != RBX_OP_RECV)
			continue;
		assert_int_equal(rbx_wire_decode(receive_buffer(stranger,
								wc.wr_id),
						 wc.length_bytes, message),
				 0);
		return true;
	}
	fail_msg("the server is silent");
	return false;
}

void stranger_is_refused(struct stranger *stranger, uint32_t reason)
{
	struct rbx_wire_message message;

	assert_true(stranger_hear(stranger, &message));
	assert_int_equal(message.type, RBX_WIRE_ERROR);
	assert_int_equal(message.status, reason);
	assert_false(stranger_hear(stranger, &message));
}

void stranger_greet(struct stranger *stranger)
{
	struct rbx_wire_message *hello = &stranger->hello;
	struct rbx_wire_message challenge;

	hello->type = RBX_WIRE_HELLO;
	if (stranger->world->secret)
		hello->hello.flags |= RBX_WIRE_HAS_SECRET;
	stranger_send(stranger, hello);
	assert_true(stranger_hear(stranger, &challenge));
	assert_int_equal(challenge.type, RBX_WIRE_CHALLENGE);
	rbx_transcript_make(&stranger->transcript, hello, &challenge);
}

void stranger_prove(struct stranger *stranger, const struct rbx_secret *secret)
{
	struct rbx_root root = rbx_root_of_secret(secret);
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };

	rbx_proof_of_client(root, &stranger->transcript, auth.auth.proof);
	stranger_send(stranger, &auth);
	rbx_key_of_connection(root, &stranger->transcript,
			      &stranger->connection_key);
}

void stranger_enter(struct stranger *stranger)
{
	stranger_greet(stranger);
	stranger_prove(stranger, stranger->world->secret);
	assert_true(stranger_hear(stranger, &stranger->welcome));
	assert_int_equal(stranger->welcome.type, RBX_WIRE_WELCOME);
}

void stranger_resume(struct stranger *again, const struct stranger *first,
		     uint64_t last_epoch)
{
	struct rbx_root root = rbx_root_of_secret(first->world->secret);
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };
	struct rbx_wire_hello *hello = &again->hello.hello;
	struct rbx_key key;

	rbx_key_of_session(root, &first->transcript, &key);
	stranger_arrive_to_resume(again, first->world,
				  first->welcome.welcome.session_id);
	hello->flags = RBX_WIRE_RESUME;
	hello->session_id = first->welcome.welcome.session_id;
	hello->incarnation = first->welcome.welcome.incarnation;
	hello->last_epoch = last_epoch;
	stranger_greet(again);
	rbx_proof_of_client(rbx_root_of_key(&key), &again->transcript,
			    auth.auth.proof);
	stranger_send(again, &auth);
	assert_true(stranger_hear(again, &again->welcome));
	assert_int_equal(again->welcome.type, RBX_WIRE_WELCOME);
}
