/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scene_server.h - a server that answers one message at a time, and keeps nobody out. */
#ifndef RBX_TESTS_SCENE_SERVER_H
#define RBX_TESTS_SCENE_SERVER_H

#include "wire/seal.h"

struct scene_server {
	struct rbx_root root; /* of the session's proofs */
	struct rbx_key session_key;
	bool is_resumed; /* the newest handshake was of a known session */
	struct rbx_transcript transcript; /* of the newest handshake */
	struct rbx_seals seals; /* of the newest connection */
	uint64_t loans_count;
};

/* Its secret is its root. */
void scene_server_open(struct scene_server *server);

/* What it answers to a message of a client; false: nothing. Answers are sent in this order. */
bool scene_server_answer(struct scene_server *server,
			 const struct rbx_wire_message *asked,
			 struct rbx_wire_message *answer);
/* The answer as bytes; WELCOME is the last one without a seal. */
size_t scene_server_encode(struct scene_server *server, const struct rbx_wire_message *answer,
			   uint8_t *bytes);

#endif
