/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* held.c - see held.h. */
#include "core/held.h"

void rbx_held_init(struct rbx_held *held)
{
	rbx_lock_init(&held->lock);
}

static bool is_judged(const struct rbx_held *held, uint32_t server)
{
	return held->ends || rbx_server_set_has(&held->out, server) ||
	       rbx_server_set_has(&held->failed, server);
}

enum rbx_held_verdict rbx_held_take(struct rbx_held *held, struct rbx_part *part)
{
	enum rbx_held_verdict verdict = RBX_HELD_WAITS;

	rbx_lock(&held->lock);
	if (rbx_server_set_has(&held->out, part->server)) {
		verdict = RBX_HELD_GOES_ON;
	} else if (is_judged(held, part->server)) {
		verdict = RBX_HELD_FAILS;
	} else {
		part->fragment.node.next = held->first ? &held->first->node : NULL;
		held->first = &part->fragment;
		rbx_server_set_add(&held->suspects, part->server);
	}
	rbx_unlock(&held->lock);
	return verdict;
}

void rbx_held_suspect(struct rbx_held *held, uint32_t server)
{
	rbx_lock(&held->lock);
	if (!is_judged(held, server))
		rbx_server_set_add(&held->suspects, server);
	rbx_unlock(&held->lock);
}

bool rbx_held_suspects(struct rbx_held *held, struct rbx_server_set *suspects,
		       struct rbx_server_set *gone)
{
	uint32_t i;

	rbx_lock(&held->lock);
	*suspects = held->suspects;
	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		gone->words[i] = held->suspects.words[i] | held->out.words[i] |
				 held->failed.words[i];
	rbx_unlock(&held->lock);
	return rbx_server_set_count(suspects) > 0;
}

bool rbx_held_has_failed(struct rbx_held *held, uint32_t server)
{
	bool has_failed;

	rbx_lock(&held->lock);
	has_failed = !rbx_server_set_has(&held->out, server) && is_judged(held, server);
	rbx_unlock(&held->lock);
	return has_failed;
}

/* Those of this server; all if it is RBX_SERVERS_MAX. Bounded by the pool of pieces. */
static struct rbx_fragment *parts_take(struct rbx_held *held, uint32_t server)
{
	struct rbx_fragment *list = held->first, *next;
	struct rbx_fragment *taken = NULL, *taken_last = NULL, *stay = NULL, *stay_last = NULL;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		if (server == RBX_SERVERS_MAX || rbx_part_of(list)->server == server)
			rbx_fragment_append(&taken, &taken_last, list, list);
		else
			rbx_fragment_append(&stay, &stay_last, list, list);
	}
	held->first = stay;
	return taken;
}

static struct rbx_fragment *judge(struct rbx_held *held, struct rbx_server_set *verdict,
				  uint32_t server)
{
	struct rbx_fragment *list;

	rbx_lock(&held->lock);
	rbx_server_set_remove(&held->suspects, server);
	rbx_server_set_add(verdict, server);
	list = parts_take(held, server);
	rbx_unlock(&held->lock);
	return list;
}

struct rbx_fragment *rbx_held_out(struct rbx_held *held, uint32_t server)
{
	return judge(held, &held->out, server);
}

struct rbx_fragment *rbx_held_failed(struct rbx_held *held, uint32_t server)
{
	return judge(held, &held->failed, server);
}

void rbx_held_renew(struct rbx_held *held, uint32_t server)
{
	rbx_lock(&held->lock);
	rbx_server_set_remove(&held->suspects, server);
	rbx_server_set_remove(&held->out, server);
	rbx_server_set_remove(&held->failed, server);
	rbx_unlock(&held->lock);
}

struct rbx_fragment *rbx_held_end(struct rbx_held *held)
{
	struct rbx_fragment *list;

	rbx_lock(&held->lock);
	held->ends = true;
	held->suspects = (struct rbx_server_set){ .words = { 0 } };
	list = parts_take(held, RBX_SERVERS_MAX);
	rbx_unlock(&held->lock);
	return list;
}

bool rbx_held_has_ended(struct rbx_held *held)
{
	bool has_ended;

	rbx_lock(&held->lock);
	has_ended = held->ends;
	rbx_unlock(&held->lock);
	return has_ended;
}

void rbx_held_resume(struct rbx_held *held)
{
	rbx_lock(&held->lock);
	held->ends = false;
	rbx_unlock(&held->lock);
}
