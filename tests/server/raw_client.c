/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* raw_client.c - see raw_client.h. */
#include "tests/server/raw_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint8_t *receive_buffer(struct raw_client *raw, uint64_t number)
{
	return raw->buffers +
	       (RAW_CLIENT_SENDS + number) * RAW_CLIENT_BUFFER_BYTES;
}

static void raw_client_prepare(struct raw_client *raw, struct world *world)
{
	const size_t size = (RAW_CLIENT_SENDS + RAW_CLIENT_RECEIVES) *
			    RAW_CLIENT_BUFFER_BYTES;
	const struct rbx_fabric_ops *ops = world->choice.ops;
	struct rbx_mr_init init = {
		.length_bytes = size,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};

	memset(raw, 0, sizeof(*raw));
	raw->world = world;
	raw->buffers = aligned_alloc(4096, size);
	assert_non_null(raw->buffers);
	init.addr = raw->buffers;
	assert_int_equal(ops->register_memory(world->device, &init, 1, &raw->mr,
					      NULL),
			 0);
	assert_int_equal(ops->create_cq(world->device, 64, &raw->cq, NULL), 0);
}

static void receives_post(struct raw_client *raw)
{
	const struct rbx_fabric_ops *ops = raw->world->choice.ops;
	struct rbx_recv_wr *bad;
	uint64_t i;

	for (i = 0; i < RAW_CLIENT_RECEIVES; i++) {
		const struct rbx_sge buffer = {
			.addr = (uintptr_t)receive_buffer(raw, i),
			.length_bytes = RAW_CLIENT_BUFFER_BYTES,
			.lkey = raw->mr->lkey,
		};
		struct rbx_recv_wr wr = {
			.wr_id = i,
			.sges = &buffer,
			.sge_count = 1,
		};

		assert_int_equal(ops->post_recv(raw->qp, &wr, &bad), 0);
	}
}

static int raw_client_dial(struct raw_client *raw, const void *private_data,
			   size_t length_bytes, uint32_t *reason)
{
	struct world *world = raw->world;
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
		.recv_depth_count = RAW_CLIENT_RECEIVES,
		.max_sge = 1,
	};
	int err;

	init.send_cq = init.recv_cq = raw->cq;
	err = world->choice.ops->connect(world->device, &init, &connect,
					 &raw->qp, NULL);
	if (err) {
		raw->qp = NULL;
		*reason = rbx_wire_refusal_decode(reply,
						  connect.reply_data_bytes);
	} else {
		receives_post(raw);
	}
	return err;
}

int raw_client_connect(struct raw_client *raw, struct world *world,
		       const void *private_data, size_t length_bytes,
		       uint32_t *reason)
{
	raw_client_prepare(raw, world);
	return raw_client_dial(raw, private_data, length_bytes, reason);
}

static void control_dial(struct raw_client *raw, uint64_t session_id)
{
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_CONTROL,
		.session_id = session_id,
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	uint32_t reason = 0;

	rbx_wire_attach_encode(&attach, bytes);
	assert_int_equal(raw_client_dial(raw, bytes, sizeof(bytes), &reason),
			 0);
}

void raw_client_arrive(struct raw_client *raw, struct world *world)
{
	raw_client_arrive_to_resume(raw, world, 0);
}

void raw_client_arrive_to_resume(struct raw_client *raw, struct world *world,
				 uint64_t session_id)
{
	raw_client_prepare(raw, world);
	control_dial(raw, session_id);
}

void raw_client_arrive_beside(struct raw_client *raw,
			      const struct raw_client *other)
{
	*raw = (struct raw_client){
		.world = other->world,
		.cq = other->cq,
		.is_guest = true,
		.buffers = other->buffers,
		.mr = other->mr,
	};
	control_dial(raw, 0);
}

void raw_client_leave(struct raw_client *raw)
{
	const struct rbx_fabric_ops *ops = raw->world->choice.ops;

	if (raw->qp)
		ops->destroy_qp(raw->qp);
	if (raw->is_guest)
		return;
	ops->destroy_cq(raw->cq);
	ops->deregister_memory(raw->world->device, &raw->mr, 1);
	free(raw->buffers);
}

void raw_client_send_bytes(struct raw_client *raw, const void *bytes,
			   size_t length_bytes)
{
	uint8_t *buffer =
		raw->buffers + raw->sends_count * RAW_CLIENT_BUFFER_BYTES;
	const struct rbx_sge sge = {
		.addr = (uintptr_t)buffer,
		.length_bytes = (uint32_t)length_bytes,
		.lkey = raw->mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
	};

	assert_true(length_bytes <= RAW_CLIENT_BUFFER_BYTES);
	assert_true(raw->sends_count++ < RAW_CLIENT_SENDS);
	memcpy(buffer, bytes, length_bytes);
	assert_int_equal(raw->world->choice.ops->post_send(raw->qp, &wr, &bad),
			 0);
}

void raw_client_send(struct raw_client *raw, struct rbx_wire_message *message)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];

	if (!message->request_id)
		message->request_id = ++raw->next_id;
	raw_client_send_bytes(raw, bytes, rbx_seal_encode(&raw->seals.out, message, bytes));
}

bool raw_client_hear(struct raw_client *raw, struct rbx_wire_message *message)
{
	const struct rbx_fabric_ops *ops = raw->world->choice.ops;
	struct rbx_wc wc;
	int spins;

	for (spins = 0; spins < WORLD_WAIT_MS * 10; spins++) {
		if (ops->poll(raw->cq, &wc, 1) != 1) {
			usleep(100);
			continue;
		}
		if (wc.status)
			return false;
		if (wc.opcode != RBX_OP_RECV)
			continue;
		assert_int_equal(rbx_seal_decode(&raw->seals.in,
						 receive_buffer(raw, wc.wr_id),
						 wc.length_bytes, message),
				 0);
		if (message->type == RBX_WIRE_WELCOME)
			raw->seals = raw->next_seals;
		return true;
	}
	fail_msg("the server is silent");
	return false;
}

void raw_client_is_refused(struct raw_client *raw, uint32_t reason)
{
	struct rbx_wire_message message;

	assert_true(raw_client_hear(raw, &message));
	assert_int_equal(message.type, RBX_WIRE_ERROR);
	assert_int_equal(message.status, reason);
	assert_false(raw_client_hear(raw, &message));
}

void raw_client_greet(struct raw_client *raw)
{
	struct rbx_wire_message *hello = &raw->hello;
	struct rbx_wire_message challenge;

	hello->type = RBX_WIRE_HELLO;
	if (raw->world->secret)
		hello->hello.flags |= RBX_WIRE_HAS_SECRET;
	raw_client_send(raw, hello);
	assert_true(raw_client_hear(raw, &challenge));
	assert_int_equal(challenge.type, RBX_WIRE_CHALLENGE);
	rbx_transcript_make(&raw->transcript, hello, &challenge);
}

void raw_client_prove(struct raw_client *raw, const struct rbx_secret *secret)
{
	struct rbx_root root = rbx_root_of_secret(secret);
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };

	rbx_proof_of_client(root, &raw->transcript, auth.auth.proof);
	raw_client_send(raw, &auth);
	rbx_key_of_connection(root, &raw->transcript, &raw->connection_key);
	rbx_key_of_session(root, &raw->transcript, &raw->session_key);
	rbx_seals_begin(&raw->next_seals, RBX_SIDE_CLIENT, root, &raw->transcript);
}

void raw_client_prove_as(struct raw_client *raw, const char *credential, const char *text)
{
	struct rbx_secret secret = { .length_bytes = strlen(text) };

	memcpy(secret.bytes, text, secret.length_bytes);
	memset(raw->hello.hello.credential, 0, RBX_CREDENTIAL_BYTES);
	strcpy(raw->hello.hello.credential, credential);
	raw->hello.hello.flags |= RBX_WIRE_HAS_SECRET;
	raw_client_greet(raw);
	raw_client_prove(raw, &secret);
}

void raw_client_enter(struct raw_client *raw)
{
	raw_client_greet(raw);
	raw_client_prove(raw, raw->world->secret);
	assert_true(raw_client_hear(raw, &raw->welcome));
	assert_int_equal(raw->welcome.type, RBX_WIRE_WELCOME);
}

void raw_client_resume(struct raw_client *again, const struct raw_client *first,
		       uint64_t last_epoch)
{
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };
	struct rbx_wire_hello *hello = &again->hello.hello;

	raw_client_arrive_to_resume(again, first->world,
				    first->welcome.welcome.session_id);
	hello->flags = RBX_WIRE_RESUME | first->hello.hello.flags;
	memcpy(hello->credential, first->hello.hello.credential, RBX_CREDENTIAL_BYTES);
	hello->session_id = first->welcome.welcome.session_id;
	hello->incarnation = first->welcome.welcome.incarnation;
	hello->last_epoch = last_epoch;
	raw_client_greet(again);
	rbx_proof_of_client(rbx_root_of_key(&first->session_key), &again->transcript,
			    auth.auth.proof);
	rbx_seals_begin(&again->next_seals, RBX_SIDE_CLIENT,
			rbx_root_of_key(&first->session_key), &again->transcript);
	raw_client_send(again, &auth);
	assert_true(raw_client_hear(again, &again->welcome));
	assert_int_equal(again->welcome.type, RBX_WIRE_WELCOME);
}
