/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/lib/misbehaving_server.h"

#include <poll.h>
#include <string.h>

#include "core/port.h"
#include "wire/attach.h"

static void server_receive(struct misbehaving_server *server, uint64_t number)
{
	const struct rbx_sge buffer = {
		.addr = (uintptr_t)server->buffers[number],
		.length_bytes = SERVER_BUFFER_BYTES,
		.lkey = server->mr->lkey,
	};
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = number,
		.sges = &buffer,
		.sge_count = 1,
	};

	server->ops->post_recv(server->qp, &wr, &bad);
}

static void server_accept(struct misbehaving_server *server)
{
	struct rbx_conn_request *request;
	struct rbx_qp_init init = {
		.send_cq = server->cq,
		.recv_cq = server->cq,
		.send_depth_count = 32,
		.recv_depth_count = SERVER_RECEIVES,
		.max_sge = 1,
	};
	uint64_t i;

	if (server->ops->get_request(server->listener, &request))
		return;
	if (server->qp || server->ops->accept(request, &init, NULL, 0,
					      &server->qp, NULL))
		return;
	for (i = 0; i < SERVER_RECEIVES; i++)
		server_receive(server, i);
}

static void server_send_bytes(struct misbehaving_server *server, size_t length)
{
	const struct rbx_sge sge = {
		.addr = (uintptr_t)server->buffers[SERVER_RECEIVES],
		.length_bytes = (uint32_t)length,
		.lkey = server->mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = SERVER_RECEIVES,
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
		.flags = RBX_WR_SIGNALED,
	};

	server->ops->post_send(server->qp, &wr, &bad);
}

static void server_send(struct misbehaving_server *server,
			const struct rbx_wire_message *message)
{
	uint8_t *buffer = server->buffers[SERVER_RECEIVES];

	server_send_bytes(server, rbx_seal_encode(&server->seals.out, message, buffer));
}

static void welcome_change(struct rbx_wire_welcome *welcome, int field)
{
	switch (field) {
	case 0: welcome->session_id ^= 1ull << 63; break;
	case 1: welcome->incarnation ^= 1; break;
	case 2: welcome->slab_bytes *= 2; break;
	case 3: welcome->memory_bytes++; break;
	case 4: welcome->free_bytes++; break;
	case 5: welcome->quota_bytes++; break;
	case 6: welcome->lease_ms++; break;
	case 7: welcome->requests_max ^= 1; break;
	case 8: welcome->queue_pairs_max ^= 1; break;
	case 9: strcpy(welcome->labels, "rack=8"); break;
	case 10: welcome->proof[RBX_WIRE_PROOF_BYTES - 1] ^= 0x80; break;
	}
}

static void server_welcome(struct misbehaving_server *server,
			   const struct rbx_wire_message *auth)
{
	struct rbx_root root = rbx_root_of_secret(server->secret);
	struct rbx_transcript transcript;
	struct rbx_wire_message welcome = {
		.type = RBX_WIRE_WELCOME,
		.request_id = auth->request_id,
		.welcome = {
			.session_id = 1,
			.incarnation = 2,
			.slab_bytes = server->mode == SERVER_NONSENSE ? 3 : 65536,
			.lease_ms = server->mode == SERVER_SHORT_LEASE ? 400 : 60000,
		},
	};

	if (server->mode == SERVER_WELCOME_OF_ANOTHER_HELLO)
		server->hello.hello.nonce[0] ^= 1;
	if (server->mode == SERVER_WELCOME_OF_ANOTHER_CHALLENGE)
		server->challenge.challenge.nonce[0] ^= 1;
	rbx_transcript_make(&transcript, &server->hello, &server->challenge);
	rbx_proof_of_server(root, &transcript, &welcome, welcome.welcome.proof);
	if (server->mode == SERVER_IMPOSTOR)
		memcpy(welcome.welcome.proof, auth->auth.proof,
		       RBX_WIRE_PROOF_BYTES);
	if (server->mode >= SERVER_CHANGES_WELCOME)
		welcome_change(&welcome.welcome,
			       (int)server->mode - SERVER_CHANGES_WELCOME);
	server_send(server, &welcome);
	rbx_seals_begin(&server->seals, RBX_SIDE_SERVER, root, &transcript);
}

static void server_answer(struct misbehaving_server *server,
			  const struct rbx_wire_message *m)
{
	struct rbx_wire_message loan = {
		.type = RBX_WIRE_SLAB_LOAN,
		.request_id = m->request_id,
		.epoch = 1,
		.loan = {
			.slab_id = 1,
			.remote_addr = UINT64_MAX - 4096,
			.length_bytes = 65536,
		},
	};

	const struct rbx_wire_message second = {
		.type = RBX_WIRE_USER_MESSAGE,
		.user_message.sequence = 2,
	};
	const struct rbx_wire_message had = {
		.type = RBX_WIRE_USER_MESSAGE_TAKEN,
		.user_message_taken.sequence = 1,
	};

	switch (m->type) {
	case RBX_WIRE_HELLO:
		if (server->mode == SERVER_GARBAGE) {
			memset(server->buffers[SERVER_RECEIVES], 0x99,
			       SERVER_BUFFER_BYTES);
			server_send_bytes(server, 100);
			break;
		}
		server->hello = *m;
		server->challenge = (struct rbx_wire_message){
			.type = RBX_WIRE_CHALLENGE,
			.request_id = m->request_id,
			.challenge.incarnation = 2,
		};
		server_send(server, &server->challenge);
		break;
	case RBX_WIRE_AUTH:
		if (server->mode == SERVER_LEAVES)
			server->ops->disconnect(server->qp);
		else
			server_welcome(server, m);
		break;
	case RBX_WIRE_USER_MESSAGE_TAKEN:
		if (server->mode == SERVER_LEAVES_OUT)
			server_send(server, &second);
		else if (server->mode == SERVER_HAS_HAD)
			server_send(server, &had);
		break;
	case RBX_WIRE_SLAB_MAP:
		if (server->mode == SERVER_CHATTERS)
			loan.request_id = m->request_id + 17;
		if (server->mode != SERVER_FALLS_SILENT)
			server_send(server, &loan);
		break;
	}
}

static void *server_run(void *argument)
{
	struct misbehaving_server *server = argument;
	struct rbx_wire_message m;
	struct rbx_wc wc;

	while (!RBX_LOAD_ACQUIRE(&server->stopping)) {
		if (!server->qp)
			server_accept(server);
		while (server->ops->poll(server->cq, &wc, 1) == 1) {
			if (wc.status || wc.opcode != RBX_OP_RECV)
				continue;
			if (server->mode != SERVER_SILENT &&
			    !rbx_seal_decode(&server->seals.in, server->buffers[wc.wr_id],
					     wc.length_bytes, &m))
				server_answer(server, &m);
			server_receive(server, wc.wr_id);
		}
		poll(NULL, 0, 1);
	}
	return NULL;
}

void misbehaving_server_start(struct misbehaving_server *server,
			      enum server_mode mode,
			      const struct rbx_fabric_choice *choice)
{
	const struct rbx_mr_init init = {
		.addr = server->buffers,
		.length_bytes = sizeof(server->buffers),
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	const struct rbx_fabric_ops *ops = choice->ops;

	server->mode = mode;
	server->ops = ops;
	assert_int_equal(ops->open(&choice->options, &server->device, NULL), 0);
	assert_int_equal(ops->create_cq(server->device, 64, &server->cq, NULL),
			 0);
	assert_int_equal(ops->register_memory(server->device, &init, 1,
					      &server->mr, NULL),
			 0);
	assert_int_equal(ops->listen(server->device, "127.0.0.1:0",
				     &server->listener, NULL),
			 0);
	assert_int_equal(
		pthread_create(&server->thread, NULL, server_run, server), 0);
}

void misbehaving_server_stop(struct misbehaving_server *server)
{
	RBX_STORE_RELEASE(&server->stopping, true);
	pthread_join(server->thread, NULL);
	server->ops->close_listener(server->listener);
	if (server->qp)
		server->ops->destroy_qp(server->qp);
	server->ops->deregister_memory(server->device, &server->mr, 1);
	server->ops->destroy_cq(server->cq);
	server->ops->close(server->device);
}
