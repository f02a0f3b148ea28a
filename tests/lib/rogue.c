/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/lib/rogue.h"

#include <poll.h>
#include <string.h>

#include "core/port.h"
#include "wire/attach.h"

static void rogue_receive(struct rogue *rogue, uint64_t number)
{
	const struct rbx_sge buffer = {
		.addr = (uintptr_t)rogue->buffers[number],
		.length_bytes = ROGUE_BUFFER_BYTES,
		.lkey = rogue->mr->lkey,
	};
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = number,
		.sges = &buffer,
		.sge_count = 1,
	};

	rogue->ops->post_recv(rogue->qp, &wr, &bad);
}

static void rogue_accept(struct rogue *rogue)
{
	struct rbx_conn_request *request;
	struct rbx_qp_init init = {
		.send_cq = rogue->cq,
		.recv_cq = rogue->cq,
		.send_depth_count = 32,
		.recv_depth_count = ROGUE_RECEIVES,
		.max_sge = 1,
	};
	uint64_t i;

	if (rogue->ops->get_request(rogue->listener, &request))
		return;
	if (rogue->qp || rogue->ops->accept(request, &init, NULL, 0, &rogue->qp,
					    NULL))
		return;
	for (i = 0; i < ROGUE_RECEIVES; i++)
		rogue_receive(rogue, i);
}

static void rogue_send_bytes(struct rogue *rogue, size_t length)
{
	const struct rbx_sge sge = {
		.addr = (uintptr_t)rogue->buffers[ROGUE_RECEIVES],
		.length_bytes = (uint32_t)length,
		.lkey = rogue->mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = ROGUE_RECEIVES,
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
		.flags = RBX_WR_SIGNALED,
	};

	rogue->ops->post_send(rogue->qp, &wr, &bad);
}

static void rogue_send(struct rogue *rogue,
		       const struct rbx_wire_message *message)
{
	rogue_send_bytes(rogue, rbx_wire_encode(message,
						rogue->buffers[ROGUE_RECEIVES]));
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
	case 9: welcome->proof[RBX_WIRE_PROOF_BYTES - 1] ^= 0x80; break;
	}
}

static void rogue_welcome(struct rogue *rogue,
			  const struct rbx_wire_message *auth)
{
	struct rbx_root root = rbx_root_of_secret(rogue->secret);
	struct rbx_transcript transcript;
	struct rbx_wire_message welcome = {
		.type = RBX_WIRE_WELCOME,
		.request_id = auth->request_id,
		.welcome = {
			.session_id = 1,
			.incarnation = 2,
			.slab_bytes = rogue->mode == ROGUE_NONSENSE ? 3 : 65536,
			.lease_ms = rogue->mode == ROGUE_SHORT_LEASE ? 400 : 60000,
		},
	};

	if (rogue->mode == ROGUE_WELCOME_OF_ANOTHER_HELLO)
		rogue->hello.hello.nonce[0] ^= 1;
	if (rogue->mode == ROGUE_WELCOME_OF_ANOTHER_CHALLENGE)
		rogue->challenge.challenge.nonce[0] ^= 1;
	rbx_transcript_make(&transcript, &rogue->hello, &rogue->challenge);
	rbx_proof_of_server(root, &transcript, &welcome, welcome.welcome.proof);
	if (rogue->mode == ROGUE_IMPOSTOR)
		memcpy(welcome.welcome.proof, auth->auth.proof,
		       RBX_WIRE_PROOF_BYTES);
	if (rogue->mode >= ROGUE_CHANGES_WELCOME)
		welcome_change(&welcome.welcome,
			       (int)rogue->mode - ROGUE_CHANGES_WELCOME);
	rogue_send(rogue, &welcome);
}

static void rogue_answer(struct rogue *rogue,
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
		if (rogue->mode == ROGUE_GARBAGE) {
			memset(rogue->buffers[ROGUE_RECEIVES], 0x99, ROGUE_BUFFER_BYTES);
			rogue_send_bytes(rogue, 100);
			break;
		}
		rogue->hello = *m;
		rogue->challenge = (struct rbx_wire_message){
			.type = RBX_WIRE_CHALLENGE,
			.request_id = m->request_id,
			.challenge.incarnation = 2,
		};
		rogue_send(rogue, &rogue->challenge);
		break;
	case RBX_WIRE_AUTH:
		if (rogue->mode == ROGUE_LEAVES)
			rogue->ops->disconnect(rogue->qp);
		else
			rogue_welcome(rogue, m);
		break;
	case RBX_WIRE_USER_MESSAGE_TAKEN:
		if (rogue->mode == ROGUE_LEAVES_OUT)
			rogue_send(rogue, &second);
		else if (rogue->mode == ROGUE_HAS_HAD)
			rogue_send(rogue, &had);
		break;
	case RBX_WIRE_SLAB_MAP:
		if (rogue->mode == ROGUE_CHATTERS)
			loan.request_id = m->request_id + 17;
		if (rogue->mode != ROGUE_FALLS_SILENT)
			rogue_send(rogue, &loan);
		break;
	}
}

static void *rogue_run(void *argument)
{
	struct rogue *rogue = argument;
	struct rbx_wire_message m;
	struct rbx_wc wc;

	while (!RBX_LOAD_ACQUIRE(&rogue->stopping)) {
		if (!rogue->qp)
			rogue_accept(rogue);
		while (rogue->ops->poll(rogue->cq, &wc, 1) == 1) {
			if (wc.status || wc.opcode != RBX_OP_RECV)
				continue;
			if (rogue->mode != ROGUE_SILENT &&
			    !rbx_wire_decode(rogue->buffers[wc.wr_id],
					     wc.length_bytes, &m))
				rogue_answer(rogue, &m);
			rogue_receive(rogue, wc.wr_id);
		}
		poll(NULL, 0, 1);
	}
	return NULL;
}

void rogue_start(struct rogue *rogue, enum rogue_mode mode,
		 const struct rbx_fabric_choice *choice)
{
	const struct rbx_mr_init init = {
		.addr = rogue->buffers,
		.length_bytes = sizeof(rogue->buffers),
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	const struct rbx_fabric_ops *ops = choice->ops;

	rogue->mode = mode;
	rogue->ops = ops;
	assert_int_equal(ops->open(&choice->options, &rogue->device, NULL), 0);
	assert_int_equal(ops->create_cq(rogue->device, 64, &rogue->cq, NULL),
			 0);
	assert_int_equal(ops->register_memory(rogue->device, &init, 1,
					      &rogue->mr, NULL),
			 0);
	assert_int_equal(ops->listen(rogue->device, "127.0.0.1:0",
				     &rogue->listener, NULL),
			 0);
	assert_int_equal(pthread_create(&rogue->thread, NULL, rogue_run, rogue),
			 0);
}

void rogue_stop(struct rogue *rogue)
{
	RBX_STORE_RELEASE(&rogue->stopping, true);
	pthread_join(rogue->thread, NULL);
	rogue->ops->close_listener(rogue->listener);
	if (rogue->qp)
		rogue->ops->destroy_qp(rogue->qp);
	rogue->ops->deregister_memory(rogue->device, &rogue->mr, 1);
	rogue->ops->destroy_cq(rogue->cq);
	rogue->ops->close(rogue->device);
}
