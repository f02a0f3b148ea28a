/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scene_server.c - see scene_server.h. */
#include "tests/client/scene_server.h"

#include "tests/core/scripted_server.h"

static const uint8_t secret[] = "a secret that both sides have";

void scene_server_open(struct scene_server *server)
{
	*server = (struct scene_server){
		.root = { secret, sizeof(secret) - 1 },
	};
}

static void challenge(struct scene_server *server,
		      const struct rbx_wire_message *hello,
		      struct rbx_wire_message *answer)
{
	*answer = scripted_challenge(hello->request_id);
	rbx_transcript_make(&server->transcript, hello, answer);
}

static void welcome(struct scene_server *server, uint64_t request_id,
		    struct rbx_wire_message *answer)
{
	*answer = scripted_welcome();
	answer->request_id = request_id;
	rbx_proof_of_server(server->root, &server->transcript, answer,
			    answer->welcome.proof);
	server->is_resumed = server->root.bytes != secret;
	if (!server->is_resumed)
		rbx_key_of_session(server->root, &server->transcript,
				   &server->session_key);
	server->root = rbx_root_of_key(&server->session_key); /* from here on */
}

static void loan(struct scene_server *server, uint64_t request_id,
		 struct rbx_wire_message *answer)
{
	uint64_t number = ++server->loans_count;

	*answer = (struct rbx_wire_message){
		.type = RBX_WIRE_SLAB_LOAN,
		.request_id = request_id,
		.epoch = number,
		.loan = { .slab_id = number,
			  .remote_addr = number * SCRIPTED_SLAB_BYTES,
			  .length_bytes = SCRIPTED_SLAB_BYTES,
			  .rkey = (uint32_t)number },
	};
}

/* The root is that of the next handshake. */
static struct rbx_root root_of_welcome(const struct scene_server *server)
{
	return server->is_resumed ? server->root :
				    (struct rbx_root){ secret, sizeof(secret) - 1 };
}

size_t scene_server_encode(struct scene_server *server, const struct rbx_wire_message *answer,
			   uint8_t *bytes)
{
	size_t length_bytes = rbx_seal_encode(&server->seals.out, answer, bytes);

	if (answer->type == RBX_WIRE_WELCOME)
		rbx_seals_begin(&server->seals, RBX_SIDE_SERVER, root_of_welcome(server),
				&server->transcript);
	return length_bytes;
}

bool scene_server_answer(struct scene_server *server,
			 const struct rbx_wire_message *asked,
			 struct rbx_wire_message *answer)
{
	switch (asked->type) {
	case RBX_WIRE_HELLO:
		challenge(server, asked, answer);
		return true;
	case RBX_WIRE_AUTH:
		welcome(server, asked->request_id, answer);
		return true;
	case RBX_WIRE_SLAB_MAP:
		loan(server, asked->request_id, answer);
		return true;
	case RBX_WIRE_HEARTBEAT:
		*answer = (struct rbx_wire_message){
			.type = RBX_WIRE_HEARTBEAT_REPLY,
			.request_id = asked->request_id,
		};
		return true;
	case RBX_WIRE_USER_MESSAGE:
		*answer = (struct rbx_wire_message){
			.type = RBX_WIRE_USER_MESSAGE_TAKEN,
			.user_message_taken.sequence =
				asked->user_message.sequence,
		};
		return true;
	default:
		return false;
	}
}
