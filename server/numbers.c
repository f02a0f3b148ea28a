/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * numbers.c - the server's counters beside those of its lender, and the list of its
 * clients.
 *
 * The control thread counts with the lock held. The public calls take the lock and copy.
 * What a peer does cannot make any of this grow: there are few reasons, and the caller
 * gives the length of the list.
 */
#include <string.h>

#include "lib/sized.h"
#include "server/state.h"

void rbx_traffic_fill(struct rbx_server *s, struct rbx_server_stats *stats)
{
	struct rbx_traffic traffic = {
		RBX_SERVER_NOT_SEEN, RBX_SERVER_NOT_SEEN,
		RBX_SERVER_NOT_SEEN, RBX_SERVER_NOT_SEEN,
	};

	if (s->fabric.ops->get_traffic)
		s->fabric.ops->get_traffic(s->device, &traffic);
	stats->reads = traffic.reads;
	stats->read_bytes = traffic.read_bytes;
	stats->writes = traffic.writes;
	stats->written_bytes = traffic.written_bytes;
}

/* ---- Refusals --------------------------------------------------------------*/

void rbx_refusal_note(struct rbx_server *s, uint32_t reason)
{
	RBX_ASSERT(reason && reason < RBX_REASONS_COUNT);
	s->refused[reason]++;
}

static const char *const reason_names[RBX_REASONS_COUNT] = {
#define RBX_REASON_NAME(name, err, sentence) [RBX_REASON_##name] = #name,
	RBX_REASONS(RBX_REASON_NAME)
#undef RBX_REASON_NAME
};

size_t rbx_server_refusals_get(struct rbx_server *s,
			       struct rbx_server_refusal *refusals,
			       size_t refusals_max)
{
	size_t count = RBX_REASONS_COUNT - 1, i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < count && i < refusals_max; i++) {
		uint32_t reason = (uint32_t)i + 1;

		refusals[i] = (struct rbx_server_refusal){
			.reason = reason_names[reason],
			.sentence = rbx_reason_sentence(reason),
			.count = s->refused[reason],
		};
	}
	pthread_mutex_unlock(&s->lock);
	return count;
}

/* ---- Answers ---------------------------------------------------------------*/

static const uint64_t bounds_ns[RBX_SERVER_ANSWER_BOUNDS_COUNT] = {
#define RBX_ANSWER_BOUND(bound_ns) bound_ns,
	RBX_SERVER_ANSWER_BOUNDS(RBX_ANSWER_BOUND)
#undef RBX_ANSWER_BOUND
};

void rbx_answer_note(struct rbx_server *s, uint64_t asked_ns)
{
	struct rbx_server_answers *answers = &s->answers;
	uint64_t took_ns = rbx_now_ns() - asked_ns;
	size_t i;

	answers->count++;
	answers->sum_ns += took_ns;
	answers->max_ns = RBX_MAX(answers->max_ns, took_ns);
	for (i = 0; i < RBX_SERVER_ANSWER_BOUNDS_COUNT; i++)
		if (took_ns <= bounds_ns[i]) {
			answers->within[i]++;
			return;
		}
}

void rbx_server_answers_get_sized(struct rbx_server *s,
				  struct rbx_server_answers *answers,
				  size_t size_bytes)
{
	struct rbx_server_answers now;
	size_t i;

	pthread_mutex_lock(&s->lock);
	now = s->answers;
	pthread_mutex_unlock(&s->lock);
	for (i = 1; i < RBX_SERVER_ANSWER_BOUNDS_COUNT; i++)
		now.within[i] += now.within[i - 1];
	rbx_sized_give(answers, size_bytes, &now, sizeof(now));
}

/* ---- Clients ---------------------------------------------------------------*/

/* The name comes from the fabric and may contain what a peer sent. */
static void name_copy(char *to, size_t to_bytes, const char *name)
{
	size_t i;

	for (i = 0; i + 1 < to_bytes && name[i]; i++)
		to[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
	to[i] = '\0';
}

static void client_describe(struct rbx_server *s,
			    struct rbx_client *client, uint64_t now_ns,
			    struct rbx_server_client *described)
{
	*described = (struct rbx_server_client){
		.slabs_lent = rbx_lender_lent_to(s->lender, rbx_holder_of(client)->id),
		.age_ms = now_ns > client->admitted_ns ?
				  (now_ns - client->admitted_ns) / 1000000 :
				  0,
		.connected = client->connection != NULL,
	};
	name_copy(described->address, sizeof(described->address), client->address);
	memcpy(described->credential, client->owner->credential,
	       sizeof(described->credential));
}

size_t rbx_server_clients_get(struct rbx_server *s,
			      struct rbx_server_client *clients,
			      size_t clients_max)
{
	uint64_t now_ns = rbx_now_ns();
	size_t count = 0;
	uint32_t i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->clients_used; i++) {
		if (!s->clients[i].session_id)
			continue;
		if (count < clients_max)
			client_describe(s, &s->clients[i], now_ns,
					&clients[count]);
		count++;
	}
	pthread_mutex_unlock(&s->lock);
	return count;
}
