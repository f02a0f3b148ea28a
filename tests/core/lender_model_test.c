/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_model_test.c - the lender beside a model that keeps a plain list of who
 * was lent what, driven by random events.
 *
 * After every event: no slab is in two hands, lent, prepared, free and ending
 * slabs are all there are, no epoch is used twice, limits that change hold for what is
 * lent, and the lender and the model agree on every answer.
 */
#include "tests/core/lender_small.h"

#define SLABS 9
#define QUOTA 4
#define SESSIONS 6
#define HISTORY 16

/* The model: for each slab who has it, or that it is ending, and whose it was. */
struct model {
	uint64_t holder[SLABS + 1]; /* 0: nobody */
	uint32_t owner[SLABS + 1]; /* while it is held or ending */
	uint64_t epoch[SLABS + 1]; /* 0: it is being prepared */
	bool ending[SLABS + 1];
	uint64_t heard_ns[SESSIONS + 1];
	bool present[SESSIONS + 1];
	uint64_t highest_epoch;
	uint32_t lend_max;
	uint32_t quota[OWNERS];
	bool draining;
	struct rbx_lender_loan history[HISTORY]; /* to be used out of place */
	unsigned int history_next;
};

static uint32_t random_state;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % bound;
}

/* Each owner has several sessions. */
static uint32_t owner_of(uint64_t session_id)
{
	return (uint32_t)session_id % OWNERS;
}

static uint32_t model_owned(const struct model *model, uint32_t owner, bool ending)
{
	uint32_t count = 0, i;

	for (i = 1; i <= SLABS; i++)
		count += (model->holder[i] || model->ending[i]) &&
			 model->ending[i] == ending && model->owner[i] == owner;
	return count;
}

static uint32_t model_held(const struct model *model, uint64_t session_id)
{
	uint32_t count = 0, i;

	for (i = 1; i <= SLABS; i++)
		count += model->holder[i] == session_id;
	return count;
}

static uint32_t model_ending(const struct model *model)
{
	uint32_t count = 0, i;

	for (i = 1; i <= SLABS; i++)
		count += model->ending[i];
	return count;
}

static uint32_t model_promised(const struct model *model)
{
	uint32_t count = 0, i;

	for (i = 1; i <= SLABS; i++)
		count += model->holder[i] != 0;
	return count;
}

static uint32_t model_free(const struct model *model)
{
	uint32_t count = 0, i;

	for (i = 1; i <= SLABS; i++)
		count += !model->holder[i] && !model->ending[i];
	return count;
}

static void model_end(struct model *model, uint64_t slab_id)
{
	assert_true(model->holder[slab_id] && !model->ending[slab_id]);
	model->holder[slab_id] = 0;
	model->ending[slab_id] = true;
}

static uint32_t model_check(const struct model *model, uint64_t session_id,
			    const struct rbx_lender_loan *loan)
{
	if (!model->present[session_id])
		return RBX_REASON_STALE_SESSION;
	if (loan->slab_id < 1 || loan->slab_id > SLABS ||
	    model->holder[loan->slab_id] != session_id ||
	    !model->epoch[loan->slab_id])
		return RBX_REASON_NOT_YOURS;
	if (model->epoch[loan->slab_id] != loan->epoch)
		return RBX_REASON_STALE_EPOCH;
	return 0;
}

static void event_lend(struct rbx_lender *lender, struct model *model,
		       uint64_t session_id)
{
	struct rbx_lender_loan loan = { 0, 0 };
	uint32_t reason = rbx_lender_lend(lender, session_id, &loan);
	uint32_t owner = owner_of(session_id), quota = model->quota[owner];
	uint32_t held = model_owned(model, owner, false);

	if (!model->present[session_id]) {
		assert_int_equal(reason, RBX_REASON_STALE_SESSION);
	} else if (model->draining) {
		assert_int_equal(reason, RBX_REASON_DRAINING);
	} else if (held >= quota) {
		assert_int_equal(reason, RBX_REASON_QUOTA);
	} else if (model_promised(model) >= model->lend_max) {
		assert_int_equal(reason, RBX_REASON_FULL);
	} else if (model_promised(model) + model_ending(model) >= model->lend_max) {
		assert_int_equal(reason, RBX_LENDER_LATER);
	} else if (held + model_owned(model, owner, true) >= quota) {
		assert_int_equal(reason, RBX_LENDER_QUOTA_LATER);
	} else {
		assert_int_equal(reason, 0);
		assert_in_range(loan.slab_id, 1, SLABS);
		assert_int_equal(model->holder[loan.slab_id], 0);
		assert_false(model->ending[loan.slab_id]);
		model->holder[loan.slab_id] = session_id;
		model->owner[loan.slab_id] = owner;
		model->epoch[loan.slab_id] = 0;
	}
}

/* The host is done with any slab, be it one that was to be prepared or not. */
static void event_prepared(struct rbx_lender *lender, struct model *model)
{
	struct rbx_lender_loan loan = { .slab_id = 1 + random_below(SLABS) };
	bool is_prepared =
		model->holder[loan.slab_id] && !model->epoch[loan.slab_id];

	if (loan.slab_id > rbx_lender_slabs_used(lender))
		return; /* nobody was ever told of it */
	if (!random_below(4)) {
		rbx_lender_unprepared(lender, loan.slab_id);
		if (is_prepared)
			model_end(model, loan.slab_id);
		return;
	}
	assert_int_equal(rbx_lender_prepared(lender, &loan), is_prepared);
	if (!is_prepared)
		return;
	assert_true(loan.epoch > model->highest_epoch);
	model->highest_epoch = loan.epoch;
	model->epoch[loan.slab_id] = loan.epoch;
	model->history[model->history_next++ % HISTORY] = loan;
}

static void event_unmap(struct rbx_lender *lender, struct model *model,
			uint64_t session_id)
{
	struct rbx_lender_loan loan = model->history[random_below(HISTORY)];
	uint32_t expected;

	if (!random_below(8))
		loan.slab_id = random_below(SLABS + 3);
	expected = model_check(model, session_id, &loan);
	assert_int_equal(rbx_lender_check(lender, session_id, &loan), expected);
	assert_int_equal(rbx_lender_unmap(lender, session_id, &loan), expected);
	if (!expected)
		model_end(model, loan.slab_id);
}

static void model_leave(struct model *model, uint64_t session_id)
{
	uint32_t i;

	for (i = 1; i <= SLABS; i++)
		if (model->holder[i] == session_id)
			model_end(model, i);
	model->present[session_id] = false;
}

static void event_come_or_go(struct rbx_lender *lender, struct model *model,
			     uint64_t session_id, uint64_t now_ns)
{
	if (!model->present[session_id]) {
		assert_int_equal(rbx_lender_admit(lender, session_id,
						  owner_of(session_id), now_ns),
				 0);
		model->present[session_id] = true;
		model->heard_ns[session_id] = now_ns;
	} else if (!random_below(3)) {
		rbx_lender_leave(lender, session_id);
		model_leave(model, session_id);
	}
}

static void event_heard(struct rbx_lender *lender, struct model *model,
			uint64_t session_id, uint64_t now_ns)
{
	uint32_t expected = model->present[session_id] ?
				    0 :
				    RBX_REASON_STALE_SESSION;

	assert_int_equal(rbx_lender_heard(lender, session_id, now_ns),
			 expected);
	model->heard_ns[session_id] = now_ns;
}

static void event_resumed(struct rbx_lender *lender, struct model *model,
			  uint64_t session_id, uint64_t now_ns)
{
	uint64_t last_epoch = model->history[random_below(HISTORY)].epoch;
	uint32_t expected = model->present[session_id] ?
				    0 :
				    RBX_REASON_STALE_SESSION;
	uint32_t i;

	assert_int_equal(rbx_lender_resumed(lender, session_id, now_ns,
					    last_epoch),
			 expected);
	model->heard_ns[session_id] = now_ns;
	for (i = 1; i <= SLABS; i++)
		if (model->holder[i] == session_id &&
		    (!model->epoch[i] || model->epoch[i] > last_epoch))
			model_end(model, i);
}

/* Some of what is to be done is done late. */
static void event_serve(struct rbx_lender *lender, struct model *model,
			uint64_t now_ns)
{
	struct rbx_lender_counts before;
	struct rbx_lender_action action;
	uint32_t revoked = 0;
	uint64_t id;

	rbx_lender_counts(lender, &before);
	while (random_below(6) && rbx_lender_next(lender, now_ns, &action)) {
		id = action.loan.slab_id;
		switch (action.kind) {
		case RBX_LENDER_EXPIRE:
			assert_true(model->present[action.session_id]);
			assert_true(now_ns -
					    model->heard_ns[action.session_id] >=
				    LEASE_NS);
			rbx_lender_leave(lender, action.session_id);
			model_leave(model, action.session_id);
			break;
		case RBX_LENDER_END:
			if (model->holder[id]) { /* revoked after its grace */
				model_end(model, id);
				revoked++;
			}
			assert_true(model->ending[id]);
			assert_int_equal(model->epoch[id], action.loan.epoch);
			rbx_lender_ended(lender, id);
			model->ending[id] = false;
			break;
		case RBX_LENDER_ASK:
			assert_int_equal(model->holder[id], action.session_id);
			assert_true(action.until_ns > now_ns);
			if (!random_below(3))
				rbx_lender_ask_again(lender, id, now_ns + 5);
			break;
		}
	}
	assert_in_range(revoked, 0, before.slabs_due); /* the others have no deadline */
}

static void compare(const struct rbx_lender *lender, const struct model *model)
{
	struct rbx_lender_counts counts;
	uint32_t lent = 0, preparing = 0, clients = 0, i;

	for (i = 1; i <= SLABS; i++) {
		lent += model->holder[i] && model->epoch[i];
		preparing += model->holder[i] && !model->epoch[i];
	}
	rbx_lender_counts(lender, &counts);
	assert_int_equal(counts.slabs_preparing, preparing);
	assert_int_equal(counts.slabs_ending, model_ending(model));
	assert_int_equal(counts.slabs_lent, lent);
	assert_int_equal(counts.slabs_free, model_free(model));
	assert_int_equal(lent + preparing + model_ending(model) +
				 counts.slabs_free,
			 SLABS);
	assert_int_equal(counts.slabs_mapped - counts.slabs_unmapped -
				 counts.slabs_revoked,
			 lent);
	assert_in_range(counts.slabs_asked, 0, lent);
	assert_in_range(counts.slabs_due, 0, counts.slabs_asked);
	for (i = 1; i <= SESSIONS; i++) {
		clients += model->present[i];
		assert_int_equal(rbx_lender_lent_to(lender, i),
				 model_held(model, i));
	}
	for (i = 0; i < OWNERS; i++) {
		bool is_idle = !model_owned(model, i, false) && !model_owned(model, i, true);
		uint64_t id;

		for (id = 1; id <= SESSIONS; id++)
			is_idle = is_idle && !(owner_of(id) == i && model->present[id]);
		assert_int_equal(rbx_lender_owner_is_idle(lender, i), is_idle);
	}
	assert_int_equal(rbx_lender_room(lender) + lent + preparing,
			 rbx_lender_surplus(lender) + model->lend_max);
	assert_true(!rbx_lender_room(lender) || !rbx_lender_surplus(lender));
	assert_int_equal(counts.clients, clients);
}

static void event_limits(struct rbx_lender *lender, struct model *model)
{
	model->lend_max = 1 + random_below(SLABS);
	rbx_lender_set_lend_max(lender, model->lend_max);
}

static void event_quota(struct rbx_lender *lender, struct model *model)
{
	uint32_t owner = random_below(OWNERS);

	model->quota[owner] = 1 + random_below(QUOTA);
	rbx_lender_set_quota(lender, owner, model->quota[owner]);
}

static void event_drain(struct rbx_lender *lender, struct model *model,
			uint64_t now_ns)
{
	uint32_t i;

	rbx_lender_drain(lender, now_ns);
	model->draining = true;
	for (i = 1; i <= SLABS; i++)
		if (model->holder[i] && !model->epoch[i])
			model_end(model, i);
}

static void one_event(struct rbx_lender *lender, struct model *model,
		      uint64_t now_ns)
{
	uint64_t session_id = 1 + random_below(SESSIONS);

	switch (random_below(16)) {
	case 0 ... 4:
		event_lend(lender, model, session_id);
		break;
	case 5 ... 7:
		event_unmap(lender, model, session_id);
		break;
	case 8:
		event_come_or_go(lender, model, session_id, now_ns);
		break;
	case 9 ... 10:
		event_heard(lender, model, session_id, now_ns);
		break;
	case 11:
		event_resumed(lender, model, session_id, now_ns);
		break;
	case 12:
		event_prepared(lender, model);
		event_prepared(lender, model);
		break;
	case 13:
		if (!random_below(4))
			rbx_lender_shrink(lender, random_below(3), now_ns,
					  random_below(2) ? 300 : RBX_LENDER_NEVER_NS);
		if (!random_below(4))
			event_limits(lender, model);
		if (!random_below(4))
			event_quota(lender, model);
		break;
	default:
		event_serve(lender, model, now_ns);
	}
}

static void run(uint32_t seed)
{
	struct rbx_lender *lender = lender_make(SLABS, QUOTA);
	struct model model = { .lend_max = SLABS, .quota = { QUOTA, QUOTA, QUOTA } };
	uint64_t now_ns = 0;
	int step;

	random_state = seed;
	for (step = 0; step < 2000; step++) {
		now_ns += random_below(40);
		if (step == 1900)
			event_drain(lender, &model, now_ns);
		one_event(lender, &model, now_ns);
		compare(lender, &model);
	}
	free(lender);
}

static void random_events_agree_with_the_model(void **state)
{
	uint32_t seed;

	(void)state;
	for (seed = 1; seed <= 300; seed++)
		run(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_events_agree_with_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
