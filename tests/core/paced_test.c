/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced_test.c - endpoints that are paced, whatever ends them.
 *
 * Random operations go through a channel to a device that completes them in order, takes
 * only a part of a chain now and then, fails or is disconnected at any time, and is cleared
 * at the end, or is not, as it has told of everything. Beside it stands a list of all
 * operations. By that list: each ends once, and well only if it was carried out; what is
 * ordered ends in order; what was refused ends after what was posted before it; and if the
 * marker can be posted, nobody has to close the endpoint to hear of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/paced.h"

#define PLACES 24u
#define DEPTH 16u
#define POSTED_MAX (DEPTH + RBX_PACED_MARKERS)
#define OPERATIONS 300u
#define STEPS_MAX 20000

struct op {
	struct rbx_fragment fragment;
	bool is_posted, is_done; /* the device has it; has carried it out */
	bool is_outstanding;
	uint32_t sequence;
};

struct posted {
	uint32_t number;
	bool is_marker, is_signaled, is_done;
};

static struct world {
	struct rbx_paced paced;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_work works[DEPTH];
	struct op ops[PLACES];
	struct posted posted[POSTED_MAX]; /* in order */
	uint32_t posted_count;
	bool is_flushing; /* the queue pair is in error */
	bool has_queue_pair;
	uint32_t disconnects_count, markers_count;
	uint32_t bad_marks_percent;
	uint32_t submitted, ended;
	uint32_t ordered_last; /* the sequence of the last that ended */
	unsigned int seed;
} w;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)rand_r(&w.seed) % below;
}

static struct op *op_of(struct rbx_fragment *fragment)
{
	return RBX_CONTAINER_OF(fragment, struct op, fragment);
}

/* ---- The host -----------------------------------------------------------------------*/

static uint64_t now_ns(void)
{
	return 1;
}

static void to_device(uint32_t number, bool is_marker, bool is_signaled)
{
	assert_true(w.has_queue_pair);
	assert_true(w.posted_count < POSTED_MAX);
	w.posted[w.posted_count++] =
		(struct posted){ number, is_marker, is_signaled, false };
}

static void carry_out(uint32_t number)
{
	struct rbx_fragment *each =
		rbx_send_ring_slot(&w.paced.channel.rings[0], number)->first;

	for (; each; each = rbx_fragment_next(each))
		op_of(each)->is_done = true;
}

/* Some of it is carried out before the post returns, and told of later, or not at all. */
static void carry_out_some(void)
{
	uint32_t count = draw(w.posted_count + 1);

	for (uint32_t i = 0; i < count && !w.is_flushing; i++) {
		w.posted[i].is_done = true;
		if (!w.posted[i].is_marker)
			carry_out(w.posted[i].number);
	}
}

/* All of a chain or, now and then, only its beginning. */
static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	uint32_t missed = draw(60) ? 0 : 1 + draw(chain->work_count);

	for (uint32_t i = 0; i < chain->work_count - missed; i++) {
		uint32_t number = chain->first_number + i;
		struct rbx_fragment *each =
			rbx_send_ring_slot(&channel->rings[0], number)->first;

		for (; each; each = rbx_fragment_next(each)) {
			assert_false(op_of(each)->is_posted);
			op_of(each)->is_posted = true;
		}
		to_device(number, false, i + 1 == chain->work_count);
	}
	carry_out_some();
	return missed;
}

static void wake(struct rbx_channel *channel)
{
	(void)channel;
}

static const struct rbx_drive drive = {
	.now_ns = now_ns,
	.post = post,
	.broken = rbx_paced_broken,
	.keep = rbx_paced_keep,
	.end = rbx_paced_refuse,
	.wake = wake,
};

static void disconnect(struct rbx_paced *paced)
{
	assert_ptr_equal(paced, &w.paced);
	w.disconnects_count++;
	w.is_flushing = true;
}

static int post_marker(struct rbx_paced *paced)
{
	assert_ptr_equal(paced, &w.paced);
	if (draw(100) < w.bad_marks_percent)
		return -EIO;
	/* One at a time. */
	for (uint32_t i = 0; i < w.posted_count; i++)
		assert_false(w.posted[i].is_marker);
	w.markers_count++;
	to_device(0, true, true);
	return 0;
}

static const struct rbx_paced_host host = {
	.disconnect = disconnect,
	.post_marker = post_marker,
};

/* ---- What is told -------------------------------------------------------------------*/

static bool some_posted_is_outstanding_before(uint32_t sequence)
{
	for (uint32_t i = 0; i < PLACES; i++)
		if (w.ops[i].is_outstanding && w.ops[i].is_posted &&
		    w.ops[i].sequence < sequence)
			return true;
	return false;
}

static void ended(struct op *op)
{
	assert_true(op->is_outstanding);
	if (op->fragment.status == 0)
		assert_true(op->is_done);
	if (!op->is_posted) {
		assert_int_equal(op->fragment.status, -EHOSTUNREACH);
		assert_false(some_posted_is_outstanding_before(op->sequence));
	}
	if (op->fragment.direction == RBX_DIRECTION_ORDERED) {
		assert_true(op->sequence > w.ordered_last);
		w.ordered_last = op->sequence;
	}
	op->is_outstanding = false;
	w.ended++;
	rbx_paced_give(&w.paced, &op->fragment);
}

static void settle(struct rbx_harvest *harvest)
{
	struct rbx_fragment *each = harvest->done_first, *next;

	rbx_window_give(&w.window, harvest->work_requests, harvest->bytes);
	assert_null(harvest->again_first);
	for (; each; each = next) {
		next = rbx_fragment_next(each);
		ended(op_of(each));
	}
}

static void posted_take(uint32_t count)
{
	w.posted_count -= count;
	for (uint32_t i = 0; i < w.posted_count; i++)
		w.posted[i] = w.posted[i + count];
}

/* The oldest has its turn; what is flushed tells of itself, signaled or not. */
static void device_step(void)
{
	struct rbx_harvest harvest = { 0 };
	struct posted first = w.posted[0];
	int32_t status = 0;

	if (w.posted_count == 0)
		return;
	if (w.is_flushing && !first.is_done)
		status = -ECANCELED;
	else if (!first.is_marker && !first.is_done && draw(100) == 0)
		status = -EACCES;
	w.is_flushing |= status != 0;
	if (!status && !first.is_marker && !first.is_done)
		carry_out(first.number);
	posted_take(1);
	if (first.is_marker)
		rbx_paced_marked(&w.paced, 2, &harvest);
	else if (status || first.is_signaled)
		rbx_drive_completed(&drive, &w.paced.channel, 0, first.number,
				    status, 2, &harvest);
	settle(&harvest);
}

/* ---- The program --------------------------------------------------------------------*/

static void begin(unsigned int seed)
{
	w = (struct world){ .seed = seed, .has_queue_pair = true };
	w.planner = (struct rbx_planner){
		.merge = draw(4) != 0,
		.chain_max = 1 + draw(RBX_CHAIN_MAX),
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	w.bad_marks_percent = draw(4) ? 0 : 90;
	rbx_window_init(&w.window, 0, draw(2) ? 0 : 1 + draw(6));
	rbx_paced_init(&w.paced, &host, &w.planner, &w.window, w.works, DEPTH);
	for (uint32_t i = 0; i < PLACES; i++)
		rbx_paced_add(&w.paced, &w.ops[i].fragment);
}

static struct rbx_fragment *make(void)
{
	struct rbx_fragment *fragment = rbx_paced_take(&w.paced);
	struct op *op = op_of(fragment);

	assert_false(op->is_outstanding);
	rbx_paced_fill(fragment, (enum rbx_direction)draw(RBX_DIRECTIONS),
		       draw(20) == 0, false);
	fragment->remote_addr = (uint64_t)draw(8) * 512;
	fragment->length_bytes = 512;
	*op = (struct op){
		.fragment = *fragment,
		.is_outstanding = true,
		.sequence = ++w.submitted,
	};
	return fragment;
}

static void submit_some(void)
{
	struct rbx_fragment *first = NULL, *last = NULL;
	uint32_t count = 1 + draw(6);

	if (!rbx_paced_has_room(&w.paced, count))
		return;
	while (count-- && w.submitted < OPERATIONS) {
		struct rbx_fragment *fragment = make();

		rbx_fragment_append(&first, &last, fragment, fragment);
	}
	if (first && rbx_channel_submit(&w.paced.channel, first, last))
		rbx_drive_combine(&drive, &w.paced.channel);
}

static void unpark(void)
{
	if (rbx_channel_unpark(&w.paced.channel))
		rbx_drive_combine(&drive, &w.paced.channel);
}

static void step(void)
{
	uint32_t what = draw(10);

	if (what < 4)
		submit_some();
	else
		device_step();
	if (draw(400) == 0)
		rbx_paced_broken(&w.paced.channel);
	unpark();
}

/* Closes it with what is outstanding. Afterwards all places are free. */
static void close_it(bool drains)
{
	struct rbx_harvest harvest = { 0 };

	rbx_paced_broken(&w.paced.channel);
	assert_true(rbx_channel_seize(&w.paced.channel));
	while (drains && w.posted_count)
		device_step();
	w.has_queue_pair = false;
	rbx_paced_clear(&w.paced, drains, 2, &harvest);
	settle(&harvest);
	rbx_channel_leave(&w.paced.channel);
	assert_int_equal(w.ended, w.submitted);
	assert_true(rbx_paced_has_room(&w.paced, PLACES));
	assert_false(rbx_paced_has_room(&w.paced, PLACES + 1));
	assert_int_equal(w.disconnects_count, 1);
	assert_int_equal(rbx_window_in_flight_work_requests(&w.window), 0);
	assert_int_equal(w.window.turns.parked_count, 0);
}

static void paced_ends_each_once_whatever_ends_it(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 2000; seed++) {
		uint32_t steps;

		begin(seed);
		steps = draw(600);
		for (uint32_t i = 0; i < steps; i++)
			step();
		close_it(seed % 2);
	}
}

/* Also if the device takes a part of a chain, whose last is not signaled. */
static void paced_tells_of_all_without_being_closed(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 1000; seed++) {
		begin(seed);
		w.bad_marks_percent = 0;
		for (int i = 0; w.ended != OPERATIONS; i++) {
			assert_true(i < STEPS_MAX);
			step();
		}
		close_it(true);
	}
}

static void marker_that_failed_is_posted_with_what_is_refused_next(void **state)
{
	(void)state;
	begin(1);
	rbx_paced_broken(&w.paced.channel);
	w.bad_marks_percent = 100;
	submit_some();
	assert_true(w.submitted > 0);
	assert_int_equal(w.posted_count, 0);
	w.bad_marks_percent = 0;
	submit_some();
	assert_int_equal(w.markers_count, 1);
	device_step();
	assert_int_equal(w.ended, w.submitted);
	close_it(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			marker_that_failed_is_posted_with_what_is_refused_next),
		cmocka_unit_test(paced_ends_each_once_whatever_ends_it),
		cmocka_unit_test(paced_tells_of_all_without_being_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
