/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * talk.c - user messages between the programs of clients and of servers, and the checks of
 * each message.
 *
 * A thread of each client connects to one server after another and sends messages to its
 * program, which answers every message. A message consists of the number of the conversation,
 * its own number, each counted from 1, and as many bytes as its number says. Each side
 * receives the other's in order, each once. A message whose send succeeded was received. Each
 * ends once, at the latest with its peer.
 */
#include "include/rdmabox/message.h"

#include <errno.h>
#include <string.h>

#include "sim/fail.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

/* The maximum of a run; then there are no more. */
#define CONVERSATIONS_MAX 512u
#define MESSAGES_MAX 64u
/* Longer than a peer may take to end all that is outstanding. */
#define ENDS_NS (60000 * RBX_SIM_MS)
#define LOOK_AGAIN_NS (2 * RBX_SIM_MS)

struct conversation {
	uint32_t said, heard, ended, had; /* of the client's messages; `heard` by the server */
	uint32_t answers_said, answers_heard; /* the other way */
	uint32_t answers_ended, answers_had;
};

static struct conversation conversations[CONVERSATIONS_MAX];
static uint32_t conversations_count;

struct text {
	uint32_t conversation;
	uint32_t number;
	uint8_t more[RBX_MESSAGE_BYTES_MAX - 8];
};

static size_t text_make(struct text *text, const struct conversation *in,
			uint32_t number)
{
	size_t more = number * 13 % (sizeof(text->more) + 1);

	text->conversation = (uint32_t)(in - conversations);
	text->number = number;
	memset(text->more, (int)number, more);
	return 8 + more;
}

/* Whether it is the next in order, and complete. */
static void text_check(const struct conversation *in, uint32_t next,
		       const void *data, size_t length, const char *who)
{
	struct text wanted;

	if (length != text_make(&wanted, in, next) ||
	    memcmp(data, &wanted, length) != 0)
		rbx_sim_fail("messages", "the %s of conversation %u hears %zu bytes in place of message %u",
			     who, wanted.conversation, length, next);
	rbx_sim_tally(RBX_SIM_TALLY_messages, 1);
}

static void end_check(uint32_t ended, uint32_t said, uint32_t had,
		      uint32_t heard, int status)
{
	if (ended > said)
		rbx_sim_fail("messages", "a message ends twice");
	if (had > heard)
		rbx_sim_fail("messages", "a message succeeded, but was never received");
	if (status != 0 && status != -EHOSTUNREACH && status != -ECANCELED)
		rbx_sim_fail("messages", "a message ends with %d", status);
}

/* ---- The server's program ---------------------------------------------------*/

static void answer_ended(int status, void *user)
{
	struct conversation *in = user;

	in->answers_ended++;
	in->answers_had += status == 0;
	end_check(in->answers_ended, in->answers_said, in->answers_had,
		  in->answers_heard, status);
}

void rbx_sim_talk_heard(struct rbx_server *server, uint64_t client,
			const void *data, size_t length, void *user)
{
	struct conversation *in;
	struct text text;

	(void)user;
	if (length < 8 || *(const uint32_t *)data >= conversations_count)
		rbx_sim_fail("messages", "a message of %zu bytes that was never sent",
			     length);
	in = &conversations[*(const uint32_t *)data];
	text_check(in, in->heard + 1, data, length, "server");
	in->heard++;
	length = text_make(&text, in, ++in->answers_said);
	/* Too many wait already, or the client is gone: it gets no answer. */
	if (rbx_server_message_submit(server, client, &text, length,
				      answer_ended, in))
		in->answers_said--;
}

/* ---- The client's program ---------------------------------------------------*/

static void answer_heard(struct rbx_peer *peer, const void *data, size_t length,
			 void *user)
{
	struct conversation *in = user;

	(void)peer;
	text_check(in, in->answers_heard + 1, data, length, "client");
	in->answers_heard++;
}

static void said_ended(int status, void *user)
{
	struct conversation *in = user;

	in->ended++;
	in->had += status == 0;
	end_check(in->ended, in->said, in->had, in->heard, status);
}

/* False: the peer is down. */
static bool say(struct rbx_peer *peer, struct conversation *in)
{
	struct text text;
	size_t length = text_make(&text, in, ++in->said);
	int err;

	while ((err = rbx_message_submit(peer, &text, length, said_ended,
					 in)) == -EAGAIN)
		rbx_sim_sleep(LOOK_AGAIN_NS);
	in->said -= err != 0;
	return err == 0;
}

static void wait_ends(const struct conversation *in)
{
	uint64_t until_ns = rbx_sim_now() + ENDS_NS;

	while (in->ended != in->said) {
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("liveness", "%u messages have not ended",
				     in->said - in->ended);
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
}

static void converse(struct rbx_sim_client *client, struct rbx_peer *peer)
{
	struct conversation *in = &conversations[conversations_count++];
	struct rbx_random *random = &client->talk_random;
	uint32_t count = 1 + rbx_random_below(random, MESSAGES_MAX);
	bool waits = rbx_random_below(random, 2);

	if (rbx_peer_on_message(peer, answer_heard, in))
		rbx_sim_fail("messages", "a new peer has a handler");
	while (count-- && !rbx_sim_world.stopping && say(peer, in))
		if (rbx_random_below(random, 4) == 0)
			rbx_sim_sleep(rbx_sim_between(random, 0,
						      100 * RBX_SIM_MS));
	if (waits)
		wait_ends(in);
	rbx_peer_close(peer);
	if (in->ended != in->said)
		rbx_sim_fail("messages", "%u messages have not ended with their peer",
			     in->said - in->ended);
}

static void *talk(void *arg)
{
	struct rbx_sim_client *client = arg;
	struct rbx_random *random = &client->talk_random;
	struct rbx_peer *peer;
	char address[16];

	while (!rbx_sim_world.stopping &&
	       conversations_count < CONVERSATIONS_MAX) {
		snprintf(address, sizeof(address), "n%u:7000",
			 rbx_sim_world
				 .servers[rbx_random_below(
					 random, rbx_sim_world.servers_count)]
				 .node);
		if (rbx_peer_connect(client->ctx, &peer, address) == 0)
			converse(client, peer);
		rbx_sim_sleep(rbx_sim_between(random, 0, 500 * RBX_SIM_MS));
	}
	return NULL;
}

void rbx_sim_talk_start(struct rbx_sim_client *client)
{
	rbx_sim_random_split(&client->talk_random, rbx_sim_world.options->seed,
			     "talk", client->index);
	client->talk = NULL;
	if (client->load.has_flags)
		client->talk = rbx_sim_spawn(client->node, talk, client);
}

void rbx_sim_talk_join(struct rbx_sim_client *client)
{
	if (client->talk)
		(void)rbx_sim_join(client->talk);
	client->talk = NULL;
}
