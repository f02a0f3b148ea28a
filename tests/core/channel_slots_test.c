/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* channel_slots_test.c - slots are found, full and free again, of peers and of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/channel_slots.h"

static struct rbx_channel_slots slots;
static struct rbx_channel channels[RBX_CHANNELS_MAX], more;

static void slots_of_peers_come_before_others(void **state)
{
	(void)state;
	slots = (struct rbx_channel_slots){ 0 };
	assert_int_equal(rbx_channel_slots_used(&slots), 0);
	assert_true(rbx_channel_slots_add_peer(&slots, &channels[0]));
	assert_true(rbx_channel_slots_add_peer(&slots, &channels[1]));
	assert_int_equal(rbx_channel_slots_used(&slots), 2);
	assert_true(rbx_channel_slots_add_paced(&slots, &channels[2]));
	assert_int_equal(rbx_channel_slots_used(&slots), RBX_PEERS_MAX + 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_ptr_equal(rbx_channel_slots_at(&slots, channels[i].slot),
				 &channels[i]);
		assert_int_equal(rbx_channel_is_paced(&channels[i]), i == 2);
	}
	assert_null(rbx_channel_slots_at(&slots, 2));
	rbx_channel_slots_remove(&slots, &channels[0]);
	assert_null(rbx_channel_slots_at(&slots, channels[0].slot));
	assert_true(rbx_channel_slots_add_peer(&slots, &more));
	assert_int_equal(more.slot, channels[0].slot);
	rbx_channel_slots_remove(&slots, &channels[2]);
	assert_true(rbx_channel_slots_add_paced(&slots, &more));
	assert_int_equal(more.slot, RBX_PEERS_MAX);
}

static void slots_are_all_used_before_one_is_refused(void **state)
{
	(void)state;
	slots = (struct rbx_channel_slots){ 0 };
	for (uint32_t i = 0; i < RBX_PEERS_MAX; i++)
		assert_true(rbx_channel_slots_add_peer(&slots, &channels[i]));
	assert_false(rbx_channel_slots_add_peer(&slots, &more));
	for (uint32_t i = RBX_PEERS_MAX; i < RBX_CHANNELS_MAX; i++)
		assert_true(rbx_channel_slots_add_paced(&slots, &channels[i]));
	assert_false(rbx_channel_slots_add_paced(&slots, &more));
	for (uint32_t i = 0; i < RBX_CHANNELS_MAX; i++) {
		assert_int_equal(channels[i].slot, i);
		assert_ptr_equal(rbx_channel_slots_at(&slots, i), &channels[i]);
	}
	assert_int_equal(rbx_channel_slots_used(&slots), RBX_CHANNELS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_of_peers_come_before_others),
		cmocka_unit_test(slots_are_all_used_before_one_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
