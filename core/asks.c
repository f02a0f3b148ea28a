/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * asks.c - sends requests to servers, and chooses the server to ask next, see upkeep.h.
 *
 * A server does one thing at a time for us, and no thread waits for it: the request stays in
 * a table until its answer has come, for many rounds if needed. Meanwhile the server is busy,
 * and asked for nothing else.
 *
 * A server that has not answered for a quarter of T is late. What waits for it asks another
 * server as soon as there is one (borrow.c). From then on the late server is avoided: it is
 * asked only if no other server can be. Servers that have refused, even if only for now, are
 * avoided for a short while, too. They are not excluded, because all servers may be slow, for
 * example if they lend large slabs.
 *
 * Replicas of a slab are to be in different failure domains. So the servers of domains that have
 * a replica are left out at first. They are taken if no other server is left but such as have
 * said just now that they lend nothing: a replica in the same domain is better than none. A
 * busy server of another domain is waited for. One that is late, or away for the moment, is
 * waited for by a rebuild until it is back or down, but not by a first write, which would be
 * without that replica meanwhile.
 */
#include "core/asks.h"

#include "core/status.h"

static uint64_t timeout_ns(const struct rbx_upkeep *upkeep)
{
	return RBX_LOAD_RELAXED(&upkeep->timeout_ns);
}

static uint64_t patience_ns(const struct rbx_upkeep *upkeep)
{
	return timeout_ns(upkeep) / 4;
}

static void mark(struct rbx_upkeep *upkeep, enum rbx_server_mark mark, uint32_t server,
		 uint64_t until_ns)
{
	uint64_t *until = &upkeep->servers[server].marked_until_ns[mark];

	if (!rbx_server_set_has(&upkeep->marked[mark], server))
		*until = 0;
	rbx_server_set_add(&upkeep->marked[mark], server);
	upkeep->any_marked[mark] = true;
	*until = RBX_MAX(*until, until_ns);
}

void rbx_asks_avoid(struct rbx_upkeep *upkeep, uint32_t server, uint64_t until_ns)
{
	mark(upkeep, RBX_SERVER_AVOIDED, server, until_ns);
}

void rbx_asks_forget(struct rbx_upkeep *upkeep, uint32_t server)
{
	rbx_server_set_remove(&upkeep->marked[RBX_SERVER_AVOIDED], server);
	rbx_server_set_remove(&upkeep->marked[RBX_SERVER_REFUSED], server);
	rbx_server_set_remove(&upkeep->marked[RBX_SERVER_FULL], server);
}

struct rbx_asked *rbx_asks_send(struct rbx_upkeep *upkeep, uint32_t server,
				enum rbx_call_kind kind,
				const struct rbx_loan *loan, uint64_t label)
{
	struct rbx_asked *asked = &upkeep->asked[upkeep->asked_count];

	RBX_ASSERT(upkeep->asked_count < RBX_ASKS_MAX);
	RBX_ASSERT(!rbx_server_set_has(&upkeep->busy, server));
	*asked = (struct rbx_asked){
		.kind = kind,
		.server = server,
		.since_ns = upkeep->now_ns,
	};
	if (loan)
		asked->loan = *loan;
	upkeep->asked_count++;
	rbx_server_set_add(&upkeep->busy, server);
	upkeep->ops->ask(upkeep, server, kind, loan, label);
	return asked;
}

/* Whether the server itself has answered that it does not lend. If it has nothing to lend yet
 * it answers -ETIMEDOUT, in time; a request without an answer is late before it ends so. */
static bool is_refusal(const struct rbx_asked *asked, int err)
{
	return asked->kind == RBX_CALL_MAP &&
	       (!rbx_status_is_away(err) || (err == -ETIMEDOUT && !asked->is_late));
}

static uint64_t retry_ns(const struct rbx_upkeep *upkeep)
{
	return upkeep->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull;
}

/* It has answered, or did not in time. */
static void judge(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		  int err)
{
	if (asked->kind == RBX_CALL_MAP && !err) {
		rbx_server_set_remove(&upkeep->marked[RBX_SERVER_REFUSED],
				      asked->server);
		rbx_server_set_remove(&upkeep->marked[RBX_SERVER_FULL], asked->server);
	} else if (is_refusal(asked, err)) {
		mark(upkeep, RBX_SERVER_REFUSED, asked->server,
		     upkeep->now_ns +
			     RBX_UPKEEP_LEND_TIMES * timeout_ns(upkeep));
		if (err != -ETIMEDOUT) /* that is for now */
			mark(upkeep, RBX_SERVER_FULL, asked->server, retry_ns(upkeep));
	}
	if (asked->is_late)
		rbx_asks_avoid(upkeep, asked->server,
			       upkeep->now_ns +
				       RBX_UPKEEP_AVOID_TIMES * timeout_ns(upkeep));
	else if (err && asked->kind == RBX_CALL_MAP)
		rbx_asks_avoid(upkeep, asked->server,
			       retry_ns(upkeep));
}

void rbx_asks_again(struct rbx_upkeep *upkeep, const struct rbx_asked *asked)
{
	struct rbx_asked *place = &upkeep->asked[upkeep->asked_count++];

	*place = *asked;
	place->again_ns = upkeep->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull;
	rbx_server_set_add(&upkeep->busy, asked->server);
}

/* As ops->answer(), also of one that is to be asked again. */
static int answer_of(struct rbx_upkeep *upkeep, struct rbx_asked *asked,
		     struct rbx_loan *loan)
{
	if (asked->again_ns) {
		if (rbx_upkeep_server_is_down(upkeep, asked->server) ||
		    rbx_held_has_failed(&upkeep->flow->held, asked->server))
			return -ENOTCONN;
		if (upkeep->now_ns < asked->again_ns)
			return -EAGAIN;
		asked->again_ns = 0;
		upkeep->ops->ask(upkeep, asked->server, asked->kind, &asked->loan, 0);
	}
	return upkeep->ops->answer(upkeep, asked->server, loan);
}

int rbx_asks_take(struct rbx_upkeep *upkeep, uint32_t *index,
		  struct rbx_asked *asked, struct rbx_loan *loan)
{
	for (; *index < upkeep->asked_count; ++*index) {
		struct rbx_asked *place = &upkeep->asked[*index];
		int err = answer_of(upkeep, place, loan);

		if (err == -EAGAIN)
			continue;
		*asked = *place;
		*place = upkeep->asked[--upkeep->asked_count];
		rbx_server_set_remove(&upkeep->busy, asked->server);
		rbx_server_set_remove(&upkeep->late, asked->server);
		judge(upkeep, asked, err);
		return err;
	}
	return -EAGAIN;
}

/* ---- Which server -------------------------------------------------------------*/

/* What it is asked for, or will be, counts as lent already. */
static uint64_t free_bytes(struct rbx_upkeep *upkeep, uint32_t server)
{
	uint64_t told_bytes = upkeep->ops->free_bytes(upkeep, server);
	uint64_t drawn_count = upkeep->servers[server].drawn_count +
			       rbx_server_set_has(&upkeep->busy, server);

	return told_bytes - RBX_MIN(told_bytes, drawn_count << upkeep->flow->map->shape.slab_shift);
}

int rbx_asks_draw(struct rbx_upkeep *upkeep,
		  const struct rbx_server_set *not_servers)
{
	struct rbx_server_set set = *not_servers;
	uint32_t drawn[2], count;

	rbx_lock(&upkeep->servers_lock);
	rbx_server_set_join(&set, &upkeep->leaving);
	count = rbx_volume_map_draw(upkeep->flow->map, &set, drawn);
	rbx_unlock(&upkeep->servers_lock);
	if (!count)
		return -ENOSPC;
	if (count == 1)
		return (int)drawn[0];
	return (int)drawn[rbx_placement_better(free_bytes(upkeep, drawn[0]),
					       free_bytes(upkeep, drawn[1]))];
}

void rbx_asks_join_refused(const struct rbx_upkeep *upkeep,
			   struct rbx_server_set *servers)
{
	rbx_server_set_join(servers, &upkeep->marked[RBX_SERVER_REFUSED]);
}

/* Whether a busy server, not of the set, could lend as well. */
static bool busy_could(struct rbx_upkeep *upkeep, const struct rbx_server_set *set)
{
	const struct rbx_server_set *up = &upkeep->flow->map->servers_up;
	uint64_t found = 0;
	uint32_t i;

	rbx_lock(&upkeep->servers_lock);
	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		found |= upkeep->busy.words[i] & up->words[i] &
			 ~(set->words[i] | upkeep->leaving.words[i]);
	rbx_unlock(&upkeep->servers_lock);
	return found != 0;
}

int rbx_asks_place_well(struct rbx_upkeep *upkeep,
			const struct rbx_server_set *not_servers)
{
	struct rbx_server_set set = *not_servers;

	rbx_server_set_join(&set, &upkeep->busy);
	rbx_server_set_join(&set, &upkeep->marked[RBX_SERVER_AVOIDED]);
	return rbx_asks_room(upkeep) ? rbx_asks_draw(upkeep, &set) : -ENOSPC;
}

bool rbx_asks_join_domains(struct rbx_upkeep *upkeep, const struct rbx_server_set *holders,
			   struct rbx_server_set *servers)
{
	const struct rbx_domains *domains = &upkeep->flow->domains;

	if (!rbx_domains_are_any(domains))
		return false;
	rbx_lock(&upkeep->servers_lock);
	rbx_domains_join(domains, &upkeep->flow->map->servers_up, holders, servers);
	rbx_unlock(&upkeep->servers_lock);
	return true;
}

/* Whatever its failure domain. */
static int place(struct rbx_upkeep *upkeep, const struct rbx_server_set *not_servers)
{
	struct rbx_server_set set = *not_servers;
	int server = rbx_asks_place_well(upkeep, not_servers);

	if (server >= 0)
		return server;
	if (!rbx_asks_room(upkeep))
		return -EAGAIN;
	rbx_server_set_join(&set, &upkeep->late);
	rbx_server_set_join(&set, &upkeep->marked[RBX_SERVER_AVOIDED]);
	if (busy_could(upkeep, &set))
		return -EAGAIN;
	set = *not_servers;
	rbx_server_set_join(&set, &upkeep->busy);
	server = rbx_asks_draw(upkeep, &set);
	if (server >= 0 || !busy_could(upkeep, not_servers))
		return server;
	set = *not_servers;
	rbx_server_set_join(&set, &upkeep->late);
	return busy_could(upkeep, &set) ? -EAGAIN : -ETIMEDOUT;
}

int rbx_asks_place(struct rbx_upkeep *upkeep, const struct rbx_server_set *not_servers,
		   const struct rbx_server_set *holders, bool is_patient)
{
	struct rbx_server_set set;
	int server;

	if (!rbx_domains_are_any(&upkeep->flow->domains))
		return place(upkeep, not_servers);
	set = *not_servers;
	(void)rbx_asks_join_domains(upkeep, holders, &set);
	rbx_server_set_join(&set, &upkeep->marked[RBX_SERVER_FULL]);
	server = place(upkeep, &set);
	if (server >= 0 || server == -EAGAIN || (is_patient && server == -ETIMEDOUT))
		return server;
	return place(upkeep, not_servers);
}

/* ---- The clock --------------------------------------------------------------------*/

static void marks_end(struct rbx_upkeep *upkeep, enum rbx_server_mark mark)
{
	struct rbx_server_set *marked = &upkeep->marked[mark];
	uint32_t i, count;

	if (!upkeep->any_marked[mark])
		return;
	count = rbx_server_set_count(marked);
	upkeep->any_marked[mark] = count > 0;
	while (count--) {
		i = rbx_server_set_member(marked, count);
		if (upkeep->now_ns >= upkeep->servers[i].marked_until_ns[mark])
			rbx_server_set_remove(marked, i);
	}
}

uint64_t rbx_asks_tick(struct rbx_upkeep *upkeep)
{
	uint64_t due_ns = UINT64_MAX;
	uint32_t i;

	marks_end(upkeep, RBX_SERVER_AVOIDED);
	marks_end(upkeep, RBX_SERVER_REFUSED);
	marks_end(upkeep, RBX_SERVER_FULL);
	for (i = 0; i < upkeep->asked_count; i++) {
		struct rbx_asked *asked = &upkeep->asked[i];
		uint64_t late_ns = asked->since_ns + patience_ns(upkeep);

		if (asked->is_late)
			continue;
		if (upkeep->now_ns < late_ns) {
			due_ns = RBX_MIN(due_ns, late_ns);
			continue;
		}
		asked->is_late = true;
		rbx_server_set_add(&upkeep->late, asked->server);
	}
	return due_ns;
}
