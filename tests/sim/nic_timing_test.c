/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nic_timing_test.c - what a work request takes through all stages, to the
 * nanosecond, on a NIC with round numbers (nic_world.c).
 *
 * Each expectation is reckoned in the comment above it, from the post on. A first
 * request warms the caches where nothing else is said.
 */
#include <errno.h>
#include <string.h>

#include "sim/nic/device.h"
#include "sim/sites.h"
#include "tests/fabric/endpoint.h"
#include "tests/sim/nic_world.h"

#define BYTES 100u

static struct test_pair pair;
static uint64_t posted_ns;

/* Nothing that the host does takes time but what a post takes before it rings. */
static void begin(void (*change)(struct rbx_nic_params *params))
{
	nic_endpoint_change = change;
	test_pair_open(&pair, NULL);
	nic_world_frozen = true;
}

static void end(void)
{
	test_pair_close(&pair);
}

/* Steps until a completion is there; returns how long after the post. */
static uint64_t next_completion_ns(struct rbx_wc *wc)
{
	while (!pair.ops->poll(pair.client_cq, wc, 1)) {
		if (!rbx_sim_step())
			fail_msg("nothing is under way");
	}
	return rbx_sim_now() - posted_ns;
}

static void expect_completion(uint64_t wr_id, int status, uint64_t after_ns)
{
	struct rbx_wc wc;
	uint64_t ns = next_completion_ns(&wc);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	assert_int_equal(ns, after_ns);
}

static void post(uint8_t opcode, uint64_t wr_id)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(&pair, opcode, &sge, 0, 0, BYTES);

	wr.wr_id = wr_id;
	posted_ns = rbx_sim_now();
	test_post(&pair, &wr);
}

static void let_all_end(void)
{
	while (rbx_sim_step())
		;
}

static void warm_up(void)
{
	struct rbx_wc wc;

	post(RBX_OP_WRITE, 0);
	next_completion_ns(&wc);
	post(RBX_OP_READ, 0);
	next_completion_ns(&wc);
	let_all_end();
}

/*
 *    40  host: 10 to write it, 30 for the one line it rings with
 *   204  64 bytes over PCIe, 100 on the way
 *   264  unit: 50 and one packet of 10
 *  1364  100 bytes read by DMA, 1,000 for the round trip
 *  1964  on the link, 500 on the way
 *  2004  unit of the responder: 40
 *  2204  100 bytes written by DMA, 100 on the way
 *  2724  20 bytes of acknowledgement, 500 on the way
 *  2739  unit: 15
 *  2903  64 bytes of completion, 100 on the way
 */
static void write_alone_takes_the_sum_of_its_stages(void **state)
{
	(void)state;
	begin(NULL);
	warm_up();
	post(RBX_OP_WRITE, 1);
	expect_completion(1, 0, 2903);
	end();
}

/*
 *   264  as a write
 *   784  20 bytes of request, 500 on the way
 *   844  unit of the responder: 60
 *  1944  100 bytes read by DMA, 1,000 for the round trip
 *  2544  on the link, 500 on the way
 *  2584  unit: 40
 *  2784  100 bytes written by DMA, 100 on the way
 *  2948  64 bytes of completion, 100 on the way
 */
static void read_alone_takes_the_sum_of_its_stages(void **state)
{
	(void)state;
	begin(NULL);
	warm_up();
	post(RBX_OP_READ, 1);
	expect_completion(1, 0, 2948);
	end();
}

/*
 * Both units and both caches are cold: at 204 a context of 100 bytes is filled
 * until 1,304, then, since one fill is made at once, a line of 8 translations until
 * 2,368: 2,164 later than warm. The responder does the same: 2,164 more.
 */
static void cold_caches_are_filled_one_by_one(void **state)
{
	(void)state;
	begin(NULL);
	post(RBX_OP_WRITE, 1);
	expect_completion(1, 0, 2903 + 2164 + 2164);
	end();
}

static void far_away(struct rbx_nic_params *params)
{
	params->link_ns = 5000;
}

/*
 * Of two writes the first waits 2,164 for the caches of its own NIC, which are cold,
 * and as long for those of the responder. So where the second is posted 4,328 later it
 * arrives at the very nanosecond at which the first has what it needs. It stays the
 * second: out of order it would be dropped, and sent again after 1,000,000.
 */
static void write_does_not_overtake_one_that_waits_for_caches(void **state)
{
	struct rbx_wc wc;

	(void)state;
	for (uint64_t later_ns = 4320; later_ns < 4336; later_ns++) {
		begin(far_away);
		post(RBX_OP_WRITE, 1);
		nic_world_pass(later_ns);
		post(RBX_OP_WRITE, 2);
		next_completion_ns(&wc);
		assert_int_equal(wc.wr_id, 1);
		if (next_completion_ns(&wc) >= 100000)
			fail_msg("it was lost where it came %u ns later",
				 (unsigned)later_ns);
		assert_int_equal(wc.wr_id, 2);
		let_all_end();
		end();
	}
}

/*
 *    40  host: 10 each, 20 to ring
 *   148  8 bytes, 100 on the way
 *  1276  two lines read by DMA: 128, and 1,000
 *  1396  unit: 60 each
 *  2536  DMA of the second: behind the first until 1,436, 100, and 1,000
 *  3136  on the link, right behind the first
 *  3176  unit
 *  3376  DMA
 *  3896  acknowledgement
 *  3911  unit
 *  4075  completion of the second; the first has none
 */
static void chain_is_fetched_with_one_read(void **state)
{
	struct rbx_sge sges[2];
	struct rbx_wr wrs[2];

	(void)state;
	begin(NULL);
	warm_up();
	for (int i = 0; i < 2; i++)
		wrs[i] = test_wr(&pair, RBX_OP_WRITE, &sges[i], 0, 0, BYTES);
	wrs[0].next = &wrs[1];
	wrs[0].flags = 0;
	wrs[1].wr_id = 2;
	posted_ns = rbx_sim_now();
	test_post(&pair, wrs);
	expect_completion(2, 0, 4075);
	end();
}

static void one_line_of_work(struct rbx_nic_params *params)
{
	params->wqe_cache_lines = 1;
}

/*
 * A cache of one line, two writes at once. The second arrives 64 later, at 268, and
 * takes the line while the first is with its unit. The first's answer at 2,724 finds
 * its work request gone: read again until 3,788, 15, and 164 for the completion.
 * That took the line from the second, whose answer came at 2,824: read again from
 * 3,788 to 4,852, since one fill is made at once, and 15 and 164.
 */
static void evicted_work_is_read_again(void **state)
{
	uint64_t at_ns;

	(void)state;
	begin(one_line_of_work);
	warm_up();
	post(RBX_OP_WRITE, 1);
	at_ns = posted_ns;
	post(RBX_OP_WRITE, 2);
	assert_int_equal(posted_ns, at_ns);
	expect_completion(1, 0, 3967);
	expect_completion(2, 0, 5031);
	end();
}

static void one_read(struct rbx_nic_params *params)
{
	params->reads_outstanding_max = 1;
}

/* The second leaves the unit 60 after the first has its data, at 2,784. From there
 * on it takes what the first did from 264: 2,684. */
static void read_waits_for_those_outstanding(void **state)
{
	(void)state;
	begin(one_read);
	warm_up();
	post(RBX_OP_READ, 1);
	post(RBX_OP_READ, 2);
	expect_completion(1, 0, 2948);
	expect_completion(2, 0, 2784 + 60 + 2684);
	end();
}

/*
 * 3,000 bytes in packets of 1,000 (10 each in the unit), as far as it differs:
 *   264  the unit has made the first packet; the last at 284
 *  1520  DMA has the first 256 bytes, the last at 4,264
 *  2520  the first packet is on the link, behind it the others; the last byte came
 *        at 4,264, and with a packet's 1,000 it has left at 5,264
 *  3020  the first arrives, the last at 5,764
 *  3140  unit: three packets; the last is through 40 after it came, at 5,804
 *  6160  DMA: the first begins at 3,060; the last 256 are written by 6,060, and 100
 *  6859  acknowledgement 520, unit 15, completion 164
 */
static void long_write_is_not_stored_on_its_way(void **state)
{
	struct rbx_sge sge;
	struct rbx_wr wr;

	(void)state;
	begin(NULL);
	warm_up();
	wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, 0, 3000);
	posted_ns = rbx_sim_now();
	test_post(&pair, &wr);
	expect_completion(1, 0, 6859);
	end();
}

static void patient(struct rbx_nic_params *params)
{
	params->moderation_ns = 1000;
	params->moderation_count = 2;
}

static uint64_t raised_ns(uint32_t posts)
{
	struct rbx_nic_device *device = rbx_nic_device_of(pair.client_device);

	pair.ops->arm(pair.client_cq);
	while (posts-- > 0)
		post(RBX_OP_WRITE, 1);
	while (device->interrupts == 0)
		assert_true(rbx_sim_step());
	return rbx_sim_now() - posted_ns;
}

/* 100 behind the completion, and once. */
static void interrupt_follows_the_completion(void **state)
{
	(void)state;
	begin(NULL);
	warm_up();
	assert_int_equal(raised_ns(1), 2903 + 100);
	pair.ops->consume_events(pair.client_cq);
	post(RBX_OP_WRITE, 2);
	let_all_end();
	assert_int_equal(rbx_nic_device_of(pair.client_device)->interrupts, 1);
	end();
}

/* One waits its 1,000 out; the second of two ends the wait: it completes 100 after
 * the first, behind it in every stage. */
static void moderation_waits_for_more(void **state)
{
	(void)state;
	begin(patient);
	warm_up();
	assert_int_equal(raised_ns(1), 2903 + 1000 + 100);
	end();
	begin(patient);
	warm_up();
	assert_int_equal(raised_ns(2), 2903 + 100 + 100);
	end();
}

/* a + b * pages: 1,000 and 2 for each of ten pages; 400. */
static void registration_costs_its_pages(void **state)
{
	struct rbx_mr_init init = {
		.length_bytes = 9 * 4096 + 1,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	uint64_t before_ns;
	struct rbx_mr *mr;

	(void)state;
	begin(NULL);
	init.addr = pair.local;
	before_ns = nic_world_spent_ns;
	assert_int_equal(pair.ops->register_memory(pair.client_device, &init, 1,
						   &mr, NULL),
			 0);
	assert_int_equal(nic_world_spent_ns - before_ns, 1020);
	pair.ops->deregister_memory(pair.client_device, &mr, 1);
	assert_int_equal(nic_world_spent_ns - before_ns, 1420);
	end();
}

/* The timer of 1,000,000 starts with the unit at 204; after two retries it has rung
 * three times. The completion takes 164. */
static void silence_times_out_after_its_retries(void **state)
{
	(void)state;
	begin(NULL);
	warm_up();
	rbx_nic_node_cut(2, true);
	post(RBX_OP_WRITE, 1);
	expect_completion(1, -ETIMEDOUT, 204 + 3000000 + 164);
	end();
}

/* The link heals while the timer runs: sent again at 1,000,204, and from there as
 * from 204 on. */
static void lost_message_is_sent_again(void **state)
{
	(void)state;
	begin(NULL);
	warm_up();
	rbx_nic_node_cut(2, true);
	memset(pair.local, 0x31, BYTES);
	post(RBX_OP_WRITE, 1);
	nic_world_pass(500000);
	assert_int_not_equal(pair.target[0], 0x31);
	rbx_nic_node_cut(2, false);
	expect_completion(1, 0, 1000000 + 2903);
	assert_int_equal(pair.target[BYTES - 1], 0x31);
	end();
}

/* The acknowledgement is lost, the write was carried out: it is answered again and
 * not carried out again. */
static void lost_answer_is_not_carried_out_twice(void **state)
{
	(void)state;
	begin(NULL);
	warm_up();
	memset(pair.local, 0x31, BYTES);
	post(RBX_OP_WRITE, 1);
	nic_world_pass(2100); /* it has passed the link */
	rbx_nic_node_cut(2, true);
	nic_world_pass(10000);
	assert_int_equal(pair.target[0], 0x31);
	pair.target[0] = 0x77;
	rbx_nic_node_cut(2, false);
	expect_completion(1, 0, 1000000 + 2903 - 200);
	assert_int_equal(pair.target[0], 0x77);
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_alone_takes_the_sum_of_its_stages),
		cmocka_unit_test(read_alone_takes_the_sum_of_its_stages),
		cmocka_unit_test(cold_caches_are_filled_one_by_one),
		cmocka_unit_test(
			write_does_not_overtake_one_that_waits_for_caches),
		cmocka_unit_test(chain_is_fetched_with_one_read),
		cmocka_unit_test(evicted_work_is_read_again),
		cmocka_unit_test(read_waits_for_those_outstanding),
		cmocka_unit_test(long_write_is_not_stored_on_its_way),
		cmocka_unit_test(interrupt_follows_the_completion),
		cmocka_unit_test(moderation_waits_for_more),
		cmocka_unit_test(registration_costs_its_pages),
		cmocka_unit_test(silence_times_out_after_its_retries),
		cmocka_unit_test(lost_message_is_sent_again),
		cmocka_unit_test(lost_answer_is_not_carried_out_twice),
	};

	nic_endpoint_name = NULL;
	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
