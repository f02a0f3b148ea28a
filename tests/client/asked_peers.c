/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* asked_peers.c - see asked_peers.h. */
#include "tests/client/asked_peers.h"

struct server servers[ASKED_PEERS];

void rbx_peer_ask(struct rbx_peer *peer, struct rbx_ask *ask)
{
	struct server *server = of_peer(peer);

	assert_int_equal(ask->kind, RBX_CALL_TALK);
	assert_null(server->ask);
	server->ask = ask;
	server->asked = *ask->message;
	server->asks_count++;
	server->has_answered = false;
	ask->message->type = RBX_WIRE_ERROR; /* an answer takes its place */
}

int rbx_peer_answer(struct rbx_peer *peer, struct rbx_ask *ask, struct rbx_loan *loan)
{
	struct server *server = of_peer(peer);

	(void)loan;
	assert_ptr_equal(server->ask, ask);
	if (!server->has_answered)
		return -EAGAIN;
	server->ask = NULL;
	return server->answer;
}

void answers(uint32_t server, int err)
{
	servers[server].answer = err;
	servers[server].has_answered = true;
}
