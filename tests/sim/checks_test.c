/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checks_test.c - the checks of the simulator find what they are for, and nothing
 * else: each is shown what must not be, and the same without it.
 *
 * A check that finds something ends the run; here it jumps back instead.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lender.h"
#include "sim/fail.h"
#include "sim/hands.h"
#include "sim/host/wrap.h"
#include "sim/oracle.h"

static jmp_buf back;
static char found[64];

static void jump_back(const char *invariant, const char *what)
{
	(void)what;
	strcpy(found, invariant);
	longjmp(back, 1);
}

/* Runs a statement; what it has found is in found. */
#define LOOK(statement)                                                       \
	do {                                                                  \
		found[0] = '\0';                                              \
		rbx_sim_fail_hook(jump_back);                                 \
		if (setjmp(back) == 0)                                        \
			statement;                                            \
		rbx_sim_fail_hook(NULL);                                      \
	} while (0)

/* ---- What a read may find -----------------------------------------------------*/

#define SIZE (4 * RBX_SIM_UNIT_BYTES)

static uint64_t first[SIZE / 8], second[SIZE / 8], other[SIZE / 8];

static void read_of_what_was_superseded_is_found(void **state)
{
	struct rbx_sim_oracle *oracle = rbx_sim_oracle_make(1, SIZE);
	uint32_t a = rbx_sim_oracle_write(oracle, 0, first, SIZE), b;
	uint64_t early;

	(void)state;
	rbx_sim_oracle_written(oracle, 0, SIZE, a, 0);
	early = rbx_sim_oracle_moment(oracle);
	b = rbx_sim_oracle_write(oracle, 0, second, SIZE);
	/* Outstanding together: the one or the other, word by word. */
	first[5] = second[5];
	LOOK(rbx_sim_oracle_read(oracle, 0, first, SIZE, early));
	assert_string_equal(found, "");
	first[5] = first[4];
	rbx_sim_oracle_written(oracle, 0, SIZE, b, 0);
	LOOK(rbx_sim_oracle_read(oracle, 0, first, SIZE, early));
	assert_string_equal(found, "");
	LOOK(rbx_sim_oracle_read(oracle, 0, second, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "");
	LOOK(rbx_sim_oracle_read(oracle, 0, first, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "contents");
	rbx_sim_oracle_free(oracle);
}

static void read_of_what_was_discarded_is_found(void **state)
{
	struct rbx_sim_oracle *oracle = rbx_sim_oracle_make(1, SIZE);
	uint32_t a = rbx_sim_oracle_write(oracle, 0, first, SIZE), b;

	(void)state;
	memset(second, 0, SIZE);
	rbx_sim_oracle_written(oracle, 0, SIZE, a, 0);
	LOOK(rbx_sim_oracle_read(oracle, 0, second, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "contents");
	b = rbx_sim_oracle_discard(oracle, 0, SIZE);
	LOOK(rbx_sim_oracle_read(oracle, 0, first, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "");
	rbx_sim_oracle_written(oracle, 0, SIZE, b, 0);
	LOOK(rbx_sim_oracle_read(oracle, 0, second, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "");
	LOOK(rbx_sim_oracle_read(oracle, 0, first, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "contents");
	rbx_sim_oracle_free(oracle);
}

static void read_of_another_place_or_client_is_found(void **state)
{
	struct rbx_sim_oracle *oracle = rbx_sim_oracle_make(1, SIZE);
	struct rbx_sim_oracle *foreign = rbx_sim_oracle_make(2, SIZE);
	uint32_t number = rbx_sim_oracle_write(oracle, 0, first, SIZE);
	const uint32_t unit = RBX_SIM_UNIT_BYTES;

	(void)state;
	(void)rbx_sim_oracle_write(foreign, 0, other, SIZE);
	rbx_sim_oracle_written(oracle, 0, SIZE, number, 0);
	LOOK(rbx_sim_oracle_read(oracle, unit, first, unit, 9));
	assert_string_equal(found, "contents");
	first[3] = 0; /* as it was before */
	LOOK(rbx_sim_oracle_read(oracle, 0, first, unit, 9));
	assert_string_equal(found, "contents");
	first[3] = 0xeeeeeeeeeeeeeeee; /* junk */
	LOOK(rbx_sim_oracle_read(oracle, 0, first, unit, 9));
	assert_string_equal(found, "contents");
	LOOK(rbx_sim_oracle_read(oracle, 0, other, unit, 9));
	assert_string_equal(found, "private");
	rbx_sim_oracle_free(oracle);
	rbx_sim_oracle_free(foreign);
}

/* A write that failed may be there or not. */
static void read_around_a_failed_write_may_find_both(void **state)
{
	struct rbx_sim_oracle *oracle = rbx_sim_oracle_make(1, SIZE);
	uint32_t a = rbx_sim_oracle_write(oracle, 0, first, SIZE), b;

	(void)state;
	rbx_sim_oracle_written(oracle, 0, SIZE, a, 0);
	b = rbx_sim_oracle_write(oracle, 0, second, SIZE);
	rbx_sim_oracle_written(oracle, 0, SIZE, b, -5);
	LOOK(rbx_sim_oracle_read(oracle, 0, first, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "");
	LOOK(rbx_sim_oracle_read(oracle, 0, second, SIZE,
				 rbx_sim_oracle_moment(oracle)));
	assert_string_equal(found, "");
	rbx_sim_oracle_free(oracle);
}

/* ---- In whose hands memory is ---------------------------------------------------*/

static char memory[8192];
static const struct rbx_domain domain;

static void give(size_t at, size_t length)
{
	const struct rbx_mr mr = { .addr = memory + at, .length_bytes = length };

	rbx_sim_hands_give(1, &mr, &domain, RBX_REMOTE_READ);
}

static void take(size_t at)
{
	const struct rbx_mr mr = { .addr = memory + at };

	rbx_sim_hands_take(&mr);
}

static void memory_in_two_hands_is_found(void **state)
{
	(void)state;
	LOOK(give(0, 4096));
	LOOK(give(4096, 4096)); /* a neighbour */
	assert_string_equal(found, "");
	take(4096);
	LOOK(give(4095, 1));
	assert_string_equal(found, "one-hand");
	take(0);
	LOOK(give(4095, 1));
	assert_string_equal(found, "");
	take(4095);
}

static void memory_that_holds_what_another_wrote_is_found(void **state)
{
	(void)state;
	memory[8191] = 1;
	LOOK(give(4096, 4096));
	assert_string_equal(found, "private");
	memory[8191] = 0;
	LOOK(give(4096, 4096));
	assert_string_equal(found, "");
	take(4096);
}

static void memory_freed_under_a_key_is_found(void **state)
{
	(void)state;
	LOOK(give(0, 4096));
	LOOK(rbx_sim_hands_freed(memory + 4096, 4096));
	assert_string_equal(found, "");
	LOOK(rbx_sim_hands_freed(memory, 8192));
	assert_string_equal(found, "revoked-key");
	take(0);
	LOOK(rbx_sim_hands_freed(memory, 8192));
	assert_string_equal(found, "");
}

/* ---- Who is lent which slab ------------------------------------------------------*/

static const struct rbx_lender_config one_slab = { .slabs_count = 1,
						   .lend_max = 1,
						   .owners_max = 1,
						   .clients_max = 1,
						   .lease_ns = 1000 };

static void slab_lent_before_its_access_has_ended_is_found(void **state)
{
	struct rbx_lender *lender = malloc(rbx_lender_size(&one_slab));
	struct rbx_lender_action action;
	struct rbx_lender_loan loan;

	(void)state;
	lender = __wrap_rbx_lender_init(lender, &one_slab);
	rbx_lender_admit(lender, 7, 0, 0);
	LOOK((void)__wrap_rbx_lender_lend(lender, 7, &loan));
	assert_true(__wrap_rbx_lender_prepared(lender, &loan));
	assert_int_equal(__wrap_rbx_lender_unmap(lender, 7, &loan), 0);
	assert_true(rbx_lender_next(lender, 0, &action));
	__wrap_rbx_lender_ended(lender, loan.slab_id);
	LOOK((void)__wrap_rbx_lender_lend(lender, 7, &loan));
	assert_string_equal(found, "");
	/* One that forgets all that it has lent. */
	__real_rbx_lender_init(lender, &one_slab);
	rbx_lender_admit(lender, 7, 0, 0);
	LOOK((void)__wrap_rbx_lender_lend(lender, 7, &loan));
	assert_string_equal(found, "one-hand");
	free(lender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_of_what_was_superseded_is_found),
		cmocka_unit_test(read_of_what_was_discarded_is_found),
		cmocka_unit_test(read_of_another_place_or_client_is_found),
		cmocka_unit_test(read_around_a_failed_write_may_find_both),
		cmocka_unit_test(memory_in_two_hands_is_found),
		cmocka_unit_test(memory_that_holds_what_another_wrote_is_found),
		cmocka_unit_test(memory_freed_under_a_key_is_found),
		cmocka_unit_test(slab_lent_before_its_access_has_ended_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
