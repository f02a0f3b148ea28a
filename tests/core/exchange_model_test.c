/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_model_test.c - two exchanges do whatever comes, in random order: operations, offers,
 * messages on their way, deadlines, devices that take their time, and the end of the
 * connection.
 *
 * After every step: what began has ended at most once, a device carries out nothing by a key
 * that has ended, and no program has a buffer back whose key is open. When all has gone
 * through: everything has ended, no key is open, and as many operations as offers were done,
 * with as many bytes.
 */
#include "core/random.h"
#include "tests/core/exchange_pair.h"

#define SEEDS 400u
#define STEPS 3000u
#define TAGS 6u

/* What the test knows of one side. */
struct known {
	bool operates[PAIR_COUNT]; /* began, and has not ended */
	bool offers[PAIR_COUNT];
	/* Posted, and not carried out. */
	struct rbx_exchange_post posts[PAIR_COUNT];
	bool is_posted[PAIR_COUNT];
	uint32_t serial[PAIR_COUNT]; /* of the key of an offer */
	uint64_t done_bytes_of_operations, done_bytes_of_offers;
	uint32_t done_operations, done_offers, ended_count;
};

struct model {
	struct pair *pair;
	struct known a, b;
	struct rbx_random random;
	uint32_t serial;
	bool is_broken;
	bool is_ordered;
};

static struct end *end_of(struct model *model, bool of_a)
{
	return of_a ? &model->pair->a : &model->pair->b;
}

static struct known *known_of(struct model *model, bool of_a)
{
	return of_a ? &model->a : &model->b;
}

static struct rbx_exchange_wish random_wish(struct model *model)
{
	struct rbx_random *random = &model->random;
	uint64_t in_ns = rbx_random_below(random, 4) ? NEVER_NS :
						       1 + rbx_random_below(random, 40);

	return (struct rbx_exchange_wish){
		.tag = rbx_random_below(random, TAGS),
		.deadline_ns = in_ns == NEVER_NS ? NEVER_NS : model->pair->now_ns + in_ns,
		.length_bytes = 1 + rbx_random_below(random, 8),
		.access = rbx_random_below(random, 10) ? RBX_WIRE_OFFER_TO_WRITE :
							 RBX_WIRE_OFFER_TO_READ,
		.key = ++model->serial,
	};
}

static void begin_operation(struct model *model, bool of_a)
{
	struct rbx_exchange_wish wish = random_wish(model);
	struct known *known = known_of(model, of_a);
	int index = rbx_exchange_operate(end_of(model, of_a)->exchange, &wish);

	if (index < 0)
		return;
	assert_false(known->operates[index]);
	known->operates[index] = true;
}

static void begin_offer(struct model *model, bool of_a)
{
	struct rbx_exchange_wish wish = random_wish(model);
	struct known *known = known_of(model, of_a);
	struct end *end = end_of(model, of_a);
	int index;

	wish.length_bytes += 4; /* most fit */
	index = rbx_exchange_offer(end->exchange, &wish);
	if (index < 0)
		return;
	assert_false(known->offers[index] || end->is_open[index]);
	known->offers[index] = end->is_open[index] = true;
	known->serial[index] = wish.key;
}

static void break_both(struct model *model)
{
	model->is_broken = true;
	rbx_exchange_break(model->pair->a.exchange, -EHOSTUNREACH);
	rbx_exchange_break(model->pair->b.exchange, -ECANCELED);
}

static void post(struct model *model, bool of_a)
{
	struct known *known = known_of(model, of_a);
	struct end *end = end_of(model, of_a);
	struct rbx_exchange_post post;

	if (!rbx_exchange_next_post(end->exchange, &post))
		return;
	rbx_exchange_posted(end->exchange, post.index);
	known->posts[post.index] = post;
	known->is_posted[post.index] = true;
}

/* Whether the other device still has that key. */
static bool key_is_open(struct model *model, bool of_a, uint32_t key)
{
	for (uint32_t i = 0; i < PAIR_COUNT; i++)
		if (end_of(model, of_a)->is_open[i] && known_of(model, of_a)->serial[i] == key)
			return true;
	return false;
}

/* A device carries out what was posted. If it is ordered all messages come later. */
static void carry_out(struct model *model, bool of_a)
{
	struct known *known = known_of(model, of_a);
	struct end *end = end_of(model, of_a);
	int status = 0;

	for (uint32_t i = 0; i < PAIR_COUNT; i++) {
		if (!known->is_posted[i])
			continue;
		known->is_posted[i] = false;
		if (model->is_broken)
			status = -ECANCELED;
		else if (!key_is_open(model, !of_a, known->posts[i].key))
			status = -EACCES;
		rbx_exchange_completed(end->exchange, i, status);
		if (status == -EACCES)
			break_both(model);
		return;
	}
}

/* On an ordered connection a message is behind all that was posted before it. */
static void one_arrives(struct model *model, bool of_a)
{
	struct known *known = known_of(model, of_a);
	struct end *from = end_of(model, of_a);
	struct rbx_wire_exchange message;

	for (uint32_t i = 0; i < PAIR_COUNT && model->is_ordered; i++)
		if (known->is_posted[i])
			return;
	if (!from->wire_count)
		return;
	message = wire_take(from);
	if (!model->is_broken)
		assert_int_equal(rbx_exchange_hear(end_of(model, !of_a)->exchange, &message), 0);
}

static void one_ends(struct model *model, bool of_a)
{
	struct known *known = known_of(model, of_a);
	struct end *end = end_of(model, of_a);
	struct rbx_exchange_end what;

	if (rbx_random_below(&model->random, 2))
		keys_end(end);
	if (!rbx_exchange_next_end(end->exchange, &what))
		return;
	assert_int_equal(what.status != 0, what.length_bytes == 0);
	known->ended_count++;
	if (what.is_offer) {
		assert_true(known->offers[what.index]);
		assert_false(end->is_open[what.index]);
		known->offers[what.index] = false;
		known->done_offers += !what.status;
		known->done_bytes_of_offers += what.length_bytes;
	} else {
		assert_true(known->operates[what.index] && !known->is_posted[what.index]);
		known->operates[what.index] = false;
		known->done_operations += !what.status;
		known->done_bytes_of_operations += what.length_bytes;
	}
}

static void say_one(struct model *model, bool of_a)
{
	struct end *end = end_of(model, of_a);
	struct rbx_wire_exchange message;

	if (rbx_exchange_next_message(end->exchange, &message)) {
		/* As many as the other side has receives. */
		assert_in_range(end->wire_count, 0, 4 * PAIR_COUNT - 1);
		end->wire[end->wire_count++] = message;
	}
}

static void tick(struct model *model, uint64_t by_ns)
{
	model->pair->now_ns += by_ns;
	rbx_exchange_tick(model->pair->a.exchange, model->pair->now_ns);
	rbx_exchange_tick(model->pair->b.exchange, model->pair->now_ns);
}

static void step(struct model *model)
{
	bool of_a = rbx_random_below(&model->random, 2);

	switch (rbx_random_below(&model->random, 9)) {
	case 0:
		begin_operation(model, of_a);
		break;
	case 1:
		begin_offer(model, of_a);
		break;
	case 2:
		post(model, of_a);
		break;
	case 3:
		/* What is to be posted goes before what is to be said, as in a host. */
		post(model, of_a);
		say_one(model, of_a);
		break;
	case 4:
		carry_out(model, of_a);
		break;
	case 5:
	case 6:
		one_arrives(model, of_a);
		break;
	case 7:
		one_ends(model, of_a);
		break;
	default:
		tick(model, 1);
	}
}

static bool is_idle(struct model *model)
{
	for (uint32_t i = 0; i < PAIR_COUNT; i++)
		if (model->a.operates[i] || model->a.offers[i] || model->b.operates[i] ||
		    model->b.offers[i])
			return false;
	return true;
}

/* All goes on until nothing is left; what has no deadline is cut off in the end. */
static void settle(struct model *model)
{
	for (uint32_t i = 0; i < 2000; i++)
		for (uint32_t of_a = 0; of_a < 2; of_a++) {
			post(model, of_a);
			say_one(model, of_a);
			carry_out(model, of_a);
			one_arrives(model, of_a);
			one_ends(model, of_a);
		}
}

static void run(uint64_t seed)
{
	struct model model = { .is_ordered = seed % 2, .pair = pair_make(seed % 2) };

	rbx_random_seed(&model.random, seed);
	for (uint32_t i = 0; i < STEPS; i++) {
		step(&model);
		/* One seed in four sees the grace pass, and one the end of the connection. */
		if (seed % 4 == 2 && i % 500 == 499)
			tick(&model, 2 * RBX_EXCHANGE_GRACE_NS);
		if (seed % 4 == 3 && i == STEPS / 2)
			break_both(&model);
	}
	settle(&model);
	if (!model.is_broken && seed % 4 != 2) {
		assert_int_equal(model.a.done_operations, model.b.done_offers);
		assert_int_equal(model.b.done_operations, model.a.done_offers);
		assert_int_equal(model.a.done_bytes_of_operations, model.b.done_bytes_of_offers);
		assert_int_equal(model.b.done_bytes_of_operations, model.a.done_bytes_of_offers);
		assert_true(model.a.done_operations > 5 && model.b.done_operations > 5);
	}
	break_both(&model);
	settle(&model);
	assert_true(is_idle(&model));
	for (uint32_t i = 0; i < PAIR_COUNT; i++)
		assert_false(model.pair->a.is_open[i] || model.pair->b.is_open[i]);
	assert_int_equal(rbx_exchange_due_ns(model.pair->a.exchange), NEVER_NS);
	pair_free(model.pair);
}

static void all_orders_end_each_once(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		run(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_orders_end_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
