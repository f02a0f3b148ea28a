/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_test.c - conditional writes and reads, and offers: they find each other in either
 * order, the contents arrive, each end has its status, and no key outlives its offer. How a
 * connection ends meanwhile is in exchange_end_test.c.
 */
#include "tests/lib/exchanges.h"

/* ---- The contents --------------------------------------------------------------------*/

static void write_before_offer_arrives(void **state)
{
	struct rbx_completion of_a, of_b;
	struct endpoints e;

	(void)state;
	open_exchanging(&e, 4);
	fill(&e.a, 0, 300 * KIB, 1);
	assert_int_equal(conditional_write(&e.a, 7, 0, 300 * KIB, LONG_MS, 1), 0);
	assert_int_equal(offer(&e.b, 7, 100, 300 * KIB, RBX_OFFER_TO_WRITE, LONG_MS, 2), 0);
	poll_both(&e, &of_a, &of_b);
	completion_is(&of_a, &e.a, RBX_COMPLETION_POSTED, 1, 0, 300 * KIB);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, 0, 300 * KIB);
	assert_memory_equal(e.b.memory + 100, e.a.memory, 300 * KIB);
	endpoints_close(&e);
}

/* The offer is kept until it is asked for; the operation may be shorter. */
static void offer_before_write_is_kept(void **state)
{
	struct rbx_completion of_a, of_b, none;
	struct endpoints e;

	(void)state;
	open_exchanging(&e, 4);
	fill(&e.a, 0, 5000, 2);
	assert_int_equal(offer(&e.b, 7, 0, 8192, RBX_OFFER_TO_WRITE, LONG_MS, 2), 0);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(rbx_queue_poll(e.a.queue, &none, 1, 5), 0);
	assert_int_equal(conditional_write(&e.a, 7, 0, 5000, LONG_MS, 1), 0);
	poll_both(&e, &of_a, &of_b);
	completion_is(&of_a, &e.a, RBX_COMPLETION_POSTED, 1, 0, 5000);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, 0, 5000);
	assert_memory_equal(e.b.memory, e.a.memory, 5000);
	assert_int_equal(e.b.memory[5000], 0);
	endpoints_close(&e);
}

static void read_brings_the_contents(void **state)
{
	struct rbx_completion of_a, of_b;
	struct endpoints e;

	(void)state;
	open_exchanging(&e, 4);
	fill(&e.b, 0, 64 * KIB, 3);
	for (uint32_t round = 0; round < 2; round++) {
		memset(e.a.memory, 0, 64 * KIB);
		if (round == 0)
			assert_int_equal(conditional_read(&e.a, 9, 0, 64 * KIB, LONG_MS, 1), 0);
		assert_int_equal(offer(&e.b, 9, 0, 64 * KIB, RBX_OFFER_TO_READ, LONG_MS, 2), 0);
		if (round == 1)
			assert_int_equal(conditional_read(&e.a, 9, 0, 64 * KIB, LONG_MS, 1), 0);
		poll_both(&e, &of_a, &of_b);
		completion_is(&of_a, &e.a, RBX_COMPLETION_POSTED, 1, 0, 64 * KIB);
		completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, 0, 64 * KIB);
		assert_memory_equal(e.a.memory, e.b.memory, 64 * KIB);
	}
	endpoints_close(&e);
}

/* In parts of 256 KiB. */
static void paced_endpoints_exchange_too(void **state)
{
	struct rbx_completion of_a, of_b;
	struct endpoints e;

	(void)state;
	endpoint_options.paced = 1;
	open_exchanging(&e, 4);
	fill(&e.a, 0, MEMORY_BYTES, 4);
	assert_int_equal(conditional_write(&e.a, 7, 0, MEMORY_BYTES, LONG_MS, 1), 0);
	assert_int_equal(offer(&e.b, 7, 0, MEMORY_BYTES, RBX_OFFER_TO_WRITE, LONG_MS, 2), 0);
	poll_both(&e, &of_a, &of_b);
	completion_is(&of_a, &e.a, RBX_COMPLETION_POSTED, 1, 0, MEMORY_BYTES);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, 0, MEMORY_BYTES);
	assert_memory_equal(e.b.memory, e.a.memory, MEMORY_BYTES);
	endpoints_close(&e);
	endpoint_options.paced = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_before_offer_arrives),
		cmocka_unit_test(offer_before_write_is_kept),
		cmocka_unit_test(read_brings_the_contents),
		cmocka_unit_test(paced_endpoints_exchange_too),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
