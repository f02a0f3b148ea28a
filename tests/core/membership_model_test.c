/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * membership_model_test.c - writers that open a volume, change its membership, are shut out
 * and go on all the same, over messages that are late, lost or come twice, with servers that
 * lose their memory. The model sees all servers at once, so it knows what has been chosen:
 *
 * - a client that has opened the volume knows of all that was chosen before;
 * - and of all that is chosen later for a client with an earlier epoch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/acceptor.h"
#include "core/membership_change.h"
#include "core/proposer.h"
#include "core/random.h"

#define SERVERS 5
#define WRITERS 4
#define MESSAGES 24
#define PROPOSALS 512
#define OPENS 256
#define SEEDS 2000
#define STEPS 2000

enum kind { PROMISE, PROMISED, ACCEPT, ACCEPTED, REFUSED };

struct message {
	enum kind kind;
	uint32_t writer, server;
	uint64_t epoch; /* of the writer that began it */
	uint64_t incarnation;
	struct rbx_membership membership;
};

struct server {
	uint64_t incarnation;
	struct rbx_acceptor acceptor;
};

struct writer {
	struct rbx_proposer proposer;
	bool is_open; /* it was OPENED, and the model looked at what it found */
	bool is_alone; /* only new members are asked, and it may be taken back */
	struct rbx_membership before; /* that is in force then */
};

/* Each membership that somebody has accepted, and who has. */
struct proposal {
	struct rbx_membership membership;
	struct rbx_member_set accepted;
	bool is_chosen;
};

struct world {
	struct rbx_random random;
	struct server servers[SERVERS];
	struct writer writers[WRITERS];
	struct message messages[MESSAGES];
	uint32_t messages_count;
	struct proposal proposals[PROPOSALS];
	uint32_t proposals_count;
	struct rbx_membership chosen; /* the newest */
	struct {
		uint64_t epoch;
		struct rbx_membership found;
	} opens[OPENS];
	uint32_t opens_count;
	uint64_t epoch, incarnation;
};

/* What has happened in all seeds: a test in which nothing happens proves nothing. */
static struct {
	uint32_t opens, chosen, changes, joint, shut_out, restarts, late, stuck, withdrawn;
} seen;

static struct world *w;

static uint32_t below(uint32_t limit)
{
	return rbx_random_below(&w->random, limit);
}

static void send(const struct message *message)
{
	if (w->messages_count < MESSAGES)
		w->messages[w->messages_count++] = *message;
}

/* ---- What the model knows ---------------------------------------------------------- */

static bool is_before(const struct rbx_membership *a, const struct rbx_membership *b)
{
	return a->epoch == b->epoch ? a->version < b->version : a->epoch < b->epoch;
}

static void note_accepted(const struct rbx_membership *membership, uint64_t incarnation)
{
	struct proposal *proposal = w->proposals;
	struct proposal *end = w->proposals + w->proposals_count;

	while (proposal < end && (proposal->membership.epoch != membership->epoch ||
				  proposal->membership.version != membership->version))
		proposal++;
	if (proposal == end) {
		assert_true(w->proposals_count++ < PROPOSALS);
		*proposal = (struct proposal){ .membership = *membership };
	}
	rbx_member_set_add(&proposal->accepted, incarnation);
	if (proposal->is_chosen ||
	    !rbx_membership_can_change(&proposal->membership, &proposal->accepted))
		return;
	proposal->is_chosen = true;
	for (uint32_t i = 0; i < w->opens_count; i++)
		assert_true(w->opens[i].epoch <= membership->epoch ||
			    !is_before(&w->opens[i].found, membership));
	if (is_before(&w->chosen, membership))
		w->chosen = *membership;
	seen.chosen++;
	seen.joint += rbx_membership_is_joint(membership);
}

static void note_opened(struct writer *writer)
{
	if (writer->is_open || writer->proposer.state != RBX_PROPOSER_OPENED)
		return;
	writer->is_open = true;
	assert_true(w->chosen.epoch > writer->proposer.epoch ||
		    !is_before(&writer->proposer.membership, &w->chosen));
	assert_true(w->opens_count < OPENS);
	w->opens[w->opens_count].epoch = writer->proposer.epoch;
	w->opens[w->opens_count++].found = writer->proposer.membership;
	seen.opens++;
}

/* ---- Steps ------------------------------------------------------------------------- */

static void server_hear(const struct message *message)
{
	struct server *server = &w->servers[message->server];
	struct message answer = *message;

	if (message->incarnation != server->incarnation)
		return;
	if (message->kind == PROMISE) {
		/* Asked again, it answers again. */
		bool is_ours = server->acceptor.promised_epoch == message->epoch;

		answer.kind = is_ours || rbx_acceptor_promise(&server->acceptor, message->epoch) ?
				      PROMISED : REFUSED;
		answer.membership = server->acceptor.membership;
	} else if (rbx_acceptor_accept(&server->acceptor, &message->membership)) {
		answer.kind = ACCEPTED;
		note_accepted(&message->membership, server->incarnation);
	} else if (server->acceptor.promised_epoch > message->epoch) {
		answer.kind = REFUSED;
	} else {
		return; /* it has to promise first */
	}
	send(&answer);
}

static void writer_hear(const struct message *message)
{
	struct writer *writer = &w->writers[message->writer];
	struct rbx_proposer *p = &writer->proposer;

	if (message->epoch != p->epoch)
		return;
	if (message->kind == PROMISED) {
		rbx_proposer_promised(p, message->incarnation, &message->membership);
	} else if (message->kind == ACCEPTED) {
		rbx_proposer_accepted(p, message->incarnation, message->membership.version);
	} else {
		seen.shut_out += p->state != RBX_PROPOSER_SHUT_OUT;
		rbx_proposer_refused(p);
	}
	note_opened(writer);
}

static void deliver(void)
{
	struct message message;
	uint32_t i;

	if (!w->messages_count)
		return;
	i = below(w->messages_count);
	message = w->messages[i];
	if (below(8)) /* else it comes once more */
		w->messages[i] = w->messages[--w->messages_count];
	else
		seen.late++;
	if (!below(10))
		return; /* lost */
	if (message.kind == PROMISE || message.kind == ACCEPT)
		server_hear(&message);
	else
		writer_hear(&message);
}

/* A server is OUT or IN again, comes or goes; several at once, as they may be lost together. */
static void change(struct writer *writer)
{
	struct rbx_proposer *p = &writer->proposer;
	struct rbx_membership next;

	rbx_membership_next(&next, &p->membership);
	for (uint32_t times = 1 + below(3); times; times--) {
		uint64_t incarnation = w->servers[below(SERVERS)].incarnation;
		struct rbx_member *member = rbx_membership_find(&next, incarnation);

		if (member)
			member->state ^= RBX_MEMBER_IN ^ RBX_MEMBER_OUT;
		else if (next.count < 8)
			next.members[next.count++] = (struct rbx_member){
				.incarnation = incarnation, .state = RBX_MEMBER_IN };
		member = &next.members[below(next.count)];
		if (!below(3))
			member->state = RBX_MEMBER_OUT;
	}
	/* Those that are OUT and voted before no more are forgotten. */
	for (uint32_t i = 0; i < next.count; i++)
		if (next.members[i].state == RBX_MEMBER_OUT && !next.members[i].was_in &&
		    !below(2))
			next.members[i--] = next.members[--next.count];
	if (rbx_membership_fault(&next))
		return;
	writer->before = p->membership;
	writer->is_alone = below(2);
	rbx_proposer_propose(p, &next);
	seen.changes++;
}

/* The new members first; then all, or it is taken back. */
static void alone_end(struct writer *writer)
{
	struct rbx_proposer *p = &writer->proposer;

	if (!writer->is_alone || p->state != RBX_PROPOSER_PROPOSED || below(4))
		return;
	writer->is_alone = false;
	if (!below(3))
		return;
	rbx_proposer_withdraw(p, &writer->before);
	seen.withdrawn++;
}

static void ask(struct writer *writer)
{
	const struct rbx_proposer *p = &writer->proposer;
	struct message message = { .writer = (uint32_t)(writer - w->writers),
				   .server = below(SERVERS), .epoch = p->epoch };
	enum rbx_membership_place place;

	message.incarnation = w->servers[message.server].incarnation;
	message.kind = PROMISE;
	if (p->state == RBX_PROPOSER_PROPOSED &&
	    rbx_member_set_has(&p->promised, message.incarnation)) {
		message.kind = ACCEPT;
		message.membership = p->membership;
		place = rbx_membership_place(&p->membership, message.incarnation);
		if (writer->is_alone && place != RBX_PLACE_COMES)
			return;
	}
	send(&message);
}

static void writer_step(struct writer *writer)
{
	struct rbx_proposer *p = &writer->proposer;

	switch (p->state) {
	case RBX_PROPOSER_OPENED:
		rbx_proposer_adopt(p);
		break;
	case RBX_PROPOSER_CHOSEN:
		if (!below(3))
			change(writer);
		break;
	case RBX_PROPOSER_SHUT_OUT:
		if (below(150))
			break;
		writer->is_open = writer->is_alone = false;
		rbx_proposer_open(p, ++w->epoch);
		break;
	default:
		/* It gives up, and another client takes its place. */
		if (!below(100)) {
			seen.stuck++;
			rbx_proposer_refused(p);
		}
		ask(writer);
		alone_end(writer);
	}
}

static void step(void)
{
	uint32_t what = below(1200);

	if (!what) {
		struct server *server = &w->servers[below(SERVERS)];

		*server = (struct server){ .incarnation = ++w->incarnation };
		seen.restarts++;
	} else if (what < 700) {
		deliver();
	} else {
		writer_step(&w->writers[below(WRITERS)]);
	}
}

static void begin(uint64_t seed)
{
	uint64_t incarnations[SERVERS];

	memset(w, 0, sizeof(*w));
	rbx_random_seed(&w->random, seed);
	for (uint32_t i = 0; i < SERVERS; i++)
		incarnations[i] = w->servers[i].incarnation = ++w->incarnation;
	rbx_proposer_create(&w->writers[0].proposer, ++w->epoch, incarnations, 1 + below(SERVERS));
	for (uint32_t i = 1; i < WRITERS; i++)
		rbx_proposer_refused(&w->writers[i].proposer);
}

static void whoever_opens_knows_what_was_chosen(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed);
		for (uint32_t i = 0; i < STEPS; i++)
			step();
	}
	free(w);
	print_message("%u opens, %u chosen (%u joint), %u changes, %u shut out, %u restarts, "
		      "%u twice, %u gave up, %u withdrawn\n", seen.opens, seen.chosen, seen.joint, seen.changes,
		      seen.shut_out, seen.restarts, seen.late, seen.stuck,
		      seen.withdrawn);
	assert_true(seen.opens > SEEDS && seen.chosen > SEEDS && seen.joint > SEEDS / 4 &&
		    seen.changes > SEEDS && seen.shut_out > SEEDS && seen.restarts > SEEDS / 4 &&
		    seen.withdrawn > SEEDS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_opens_knows_what_was_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
