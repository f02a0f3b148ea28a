/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reconcile_test.c - why the checksums of a volume could not be read is told as it is. */
#include "client/reconcile.h"

#include "client/scratch.h"
#include "rdmabox/rdmabox.h"
#include "tests/client/keeper_world.h"

/* ---- A host without memory ------------------------------------------------------------------ */

int rbx_scratch_make(struct rbx_scratch *scratch)
{
	(void)scratch;
	return -ENOMEM;
}

void rbx_scratch_free(struct rbx_scratch *scratch)
{
	(void)scratch;
}

int rbx_volume_turn_wait(struct rbx_volume_control *control)
{
	(void)control;
	return 0;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void reconcile_without_memory_says_so(void **state)
{
	struct world *w = make(2);

	(void)state;
	w->control.named = &w->named;
	assert_int_equal(rbx_reconcile(&w->control, false), -ENOMEM);
	assert_non_null(strstr(rbx_last_error(), "out of memory"));
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reconcile_without_memory_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
