/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state_file_test.c - what a server finds in its memory file is what it has written: the entry of
 * before, or the one of after, wherever a process was killed in between.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/loan.h"
#include "server/state_file.h"

#define UPDATES 6

static uint8_t *state, *other;

static int memory_make(void **unused)
{
	(void)unused;
	state = calloc(1, RBX_STATE_BYTES);
	other = calloc(1, RBX_STATE_BYTES);
	return !state || !other;
}

static int memory_free(void **unused)
{
	(void)unused;
	free(state);
	free(other);
	return 0;
}

static struct rbx_state_head head_of(uint64_t limit)
{
	return (struct rbx_state_head){
		.incarnation = 77,
		.file_id = 5,
		.file_born = 6,
		.slab_bytes = 4 << 20,
		.slabs_count = 8,
		.memory_at_bytes = 12 << 20,
		.epoch_limit = limit,
		.boot = "a start",
	};
}

static struct rbx_state_volume volume_of(uint64_t epoch)
{
	struct rbx_state_volume volume = {
		.holder_id = 9,
		.promised_epoch = epoch + 1,
		.record = { .name = "db", .volume_id = 4, .size_bytes = 1 << 20,
			    .slab_bytes = 1 << 16, .epoch = epoch, .version = epoch,
			    .replicas = 1, .members_count = 1, .incarnations = { 77 } },
		.writer_name = "a test",
	};

	return volume;
}

static bool is_same_volume(const struct rbx_state_volume *one, const struct rbx_state_volume *two)
{
	return one->holder_id == two->holder_id && one->promised_epoch == two->promised_epoch &&
	       one->record.epoch == two->record.epoch &&
	       one->record.version == two->record.version &&
	       !strcmp(one->record.name, two->record.name) &&
	       !strcmp(one->reserved_name, two->reserved_name) &&
	       !strcmp(one->writer_name, two->writer_name);
}

/* ---- Tests -----------------------------------------------------------------------------*/

static void what_is_put_is_got(void **unused)
{
	const struct rbx_state_slab slab = { 9, 3, 12, 5, 6 };
	struct rbx_state_volume volume = volume_of(6), found;
	struct rbx_state_head head = head_of(20), found_head;
	struct rbx_state_slab found_slab;

	(void)unused;
	rbx_state_format(state, &head);
	assert_int_equal(rbx_state_head_get(state, &found_head), 0);
	assert_int_equal(found_head.incarnation, 77);
	assert_int_equal(found_head.epoch_limit, 20);
	assert_string_equal(found_head.boot, "a start");
	assert_int_equal(rbx_state_volume_get(state, 1023, &found), -ENOENT);
	strcpy(volume.reserved_name, "other");
	rbx_state_volume_put(state, 1023, &volume);
	assert_int_equal(rbx_state_volume_get(state, 1023, &found), 0);
	assert_true(is_same_volume(&volume, &found));
	assert_int_equal(rbx_state_slab_get(state, 7, &found_slab), -ENOENT);
	rbx_state_slab_put(state, 7, &slab);
	assert_int_equal(rbx_state_slab_get(state, 7, &found_slab), 0);
	assert_int_equal(found_slab.label, 3);
	assert_int_equal(found_slab.epoch, 12);
	assert_int_equal(found_slab.intent, 5);
	assert_int_equal(found_slab.behind, 6);
	assert_int_equal(rbx_state_check(state, &head), 0);
	rbx_state_slab_put(state, 7, NULL);
	assert_int_equal(rbx_state_slab_get(state, 7, &found_slab), -ENOENT);
	rbx_state_volume_put(state, 1023, NULL);
	assert_int_equal(rbx_state_volume_get(state, 1023, &found), -ENOENT);
}

/* Puts the first bytes of an update of `count` bytes at `at`, and the rest as before. */
static void tear(uint8_t *torn, const uint8_t *after, size_t at, size_t count, size_t cut,
		 bool from_end)
{
	if (from_end)
		memcpy(torn + at + count - cut, after + at + count - cut, cut);
	else
		memcpy(torn + at, after + at, cut);
}

/* Each prefix and each suffix of an update, of one that adds, several that change, and one that
 * removes. */
static void volume_that_is_torn_is_as_before_or_after(void **unused)
{
	const size_t at = RBX_STATE_VOLUMES_AT, count = 2 * RBX_STATE_VOLUME_BYTES;
	struct rbx_state_head head = head_of(0);
	struct rbx_state_volume before, after, found;
	uint8_t copy[2 * RBX_STATE_VOLUME_BYTES];
	int was = -ENOENT, is, update, from_end;
	size_t cut;

	(void)unused;
	rbx_state_format(state, &head);
	for (update = 1; update <= UPDATES; update++) {
		memcpy(other, state, RBX_STATE_SLABS_AT);
		after = volume_of((uint64_t)update);
		is = update < UPDATES ? 0 : -ENOENT;
		rbx_state_volume_put(state, 0, is ? NULL : &after);
		memcpy(copy, other + at, count);
		for (cut = 0; cut <= count; cut++)
			for (from_end = 0; from_end < 2; from_end++) {
				int got;

				memcpy(other + at, copy, count);
				tear(other, state, at, count, cut, from_end);
				got = rbx_state_volume_get(other, 0, &found);
				if (got)
					assert_true(got == -ENOENT && (was || is));
				else
					assert_true((!was && is_same_volume(&found, &before)) ||
						    (!is && is_same_volume(&found, &after)));
				if (cut == count)
					assert_int_equal(got, is);
			}
		/* It goes on from one that was torn in the middle. */
		memcpy(other + at, copy, count);
		tear(other, state, at, count, RBX_STATE_VOLUME_BYTES / 2, false);
		rbx_state_volume_put(other, 0, &after);
		assert_int_equal(rbx_state_volume_get(other, 0, &found), 0);
		assert_true(is_same_volume(&found, &after));
		before = after;
		was = is;
	}
}

static void slab_and_head_that_are_torn_are_as_before_or_after(void **unused)
{
	const size_t slab_at = RBX_STATE_SLABS_AT, slab_count = 2 * RBX_STATE_SLAB_BYTES;
	const size_t head_at = RBX_STATE_HEAD_AT, head_count = 2 * RBX_STATE_HEAD_BYTES;
	struct rbx_state_slab slab = { 9, 1, 1, 0, 0 }, found;
	struct rbx_state_head head = head_of(1), found_head;
	uint64_t update;
	size_t cut;

	(void)unused;
	rbx_state_format(state, &head);
	rbx_state_slab_put(state, 0, &slab);
	for (update = 2; update <= UPDATES; update++) {
		head.epoch_limit = update;
		slab.label = slab.epoch = update;
		for (cut = 0; cut <= RBX_MAX(slab_count, head_count); cut++) {
			memcpy(other, state, RBX_STATE_SLABS_AT + slab_count);
			rbx_state_head_put(other, &head);
			rbx_state_slab_put(other, 0, &slab);
			/* `state` becomes what was torn, and is then made whole. */
			tear(state, other, slab_at, slab_count, RBX_MIN(cut, slab_count), false);
			tear(state, other, head_at, head_count, RBX_MIN(cut, head_count), false);
			assert_int_equal(rbx_state_slab_get(state, 0, &found), 0);
			assert_true(found.epoch == update || found.epoch == update - 1);
			assert_int_equal(found.epoch, found.label);
			assert_int_equal(rbx_state_head_get(state, &found_head), 0);
			assert_true(found_head.epoch_limit == update ||
				    found_head.epoch_limit == update - 1);
		}
		assert_int_equal(found.epoch, update);
		assert_int_equal(found_head.epoch_limit, update);
	}
}

/* Both copies are changed: neither the state of before nor that of after is there. */
static void damage_is_found(void **unused)
{
	struct rbx_state_head head = head_of(20), found_head;
	struct rbx_state_volume volume = volume_of(3), found;
	const struct rbx_state_slab slab = { 9, 3, 12, 5, 6 };
	size_t i;

	(void)unused;
	rbx_state_format(state, &head);
	rbx_state_head_put(state, &head);
	rbx_state_volume_put(state, 0, &volume);
	rbx_state_volume_put(state, 0, &volume);
	rbx_state_slab_put(state, 0, &slab);
	rbx_state_slab_put(state, 0, &slab);
	for (i = 0; i < RBX_STATE_VOLUME_BYTES; i++) {
		uint8_t *byte = state + RBX_STATE_VOLUMES_AT + i;

		byte[0] ^= 1;
		byte[RBX_STATE_VOLUME_BYTES] ^= 1;
		assert_int_equal(rbx_state_volume_get(state, 0, &found), -EBADMSG);
		assert_int_equal(rbx_state_check(state, &head), -EBADMSG);
		byte[0] ^= 1;
		byte[RBX_STATE_VOLUME_BYTES] ^= 1;
	}
	for (i = 0; i < RBX_STATE_HEAD_BYTES; i++) {
		uint8_t *byte = state + RBX_STATE_HEAD_AT + i;

		byte[0] ^= 1;
		byte[RBX_STATE_HEAD_BYTES] ^= 1;
		assert_int_equal(rbx_state_head_get(state, &found_head), -EBADMSG);
		byte[0] ^= 1;
		byte[RBX_STATE_HEAD_BYTES] ^= 1;
	}
	assert_int_equal(rbx_state_check(state, &head), 0);
	head.epoch_limit = 11; /* lower than that of a loan */
	assert_int_equal(rbx_state_check(state, &head), -EBADMSG);
	state[0] ^= 1;
	assert_int_equal(rbx_state_head_get(state, &found_head), -EBADMSG);
	state[0] ^= 1;
	state[8]++;
	assert_int_equal(rbx_state_head_get(state, &found_head), -EPROTONOSUPPORT);
}

/* The next loan would have an epoch that no client takes. */
static void epochs_that_leave_no_next_one_are_no_good(void **unused)
{
	struct rbx_state_head head = head_of((1ull << RBX_LOAN_EPOCH_BITS) - 1), found;

	(void)unused;
	rbx_state_format(state, &head);
	assert_int_equal(rbx_state_head_get(state, &found), 0);
	head.epoch_limit++;
	rbx_state_format(state, &head);
	rbx_state_head_put(state, &head);
	assert_int_equal(rbx_state_head_get(state, &found), -EBADMSG);
	head.epoch_limit = UINT64_MAX;
	rbx_state_head_put(state, &head);
	rbx_state_head_put(state, &head);
	assert_int_equal(rbx_state_head_get(state, &found), -EBADMSG);
}

/* A good copy is good at its own place alone. */
static void entry_of_another_place_is_no_good(void **unused)
{
	struct rbx_state_head head = head_of(20);
	struct rbx_state_volume volume = volume_of(3), found;

	(void)unused;
	rbx_state_format(state, &head);
	rbx_state_volume_put(state, 0, &volume);
	rbx_state_volume_put(state, 0, &volume);
	memcpy(state + RBX_STATE_VOLUMES_AT + 2 * RBX_STATE_VOLUME_BYTES,
	       state + RBX_STATE_VOLUMES_AT, 2 * RBX_STATE_VOLUME_BYTES);
	assert_int_equal(rbx_state_volume_get(state, 0, &found), 0);
	assert_int_equal(rbx_state_volume_get(state, 1, &found), -EBADMSG);
}

static void record_that_nobody_accepts_is_no_good(void **unused)
{
	struct rbx_state_head head = head_of(20);
	struct rbx_state_volume volume = volume_of(3), found;

	(void)unused;
	rbx_state_format(state, &head);
	volume.promised_epoch = 2; /* it was accepted in epoch 3 */
	rbx_state_volume_put(state, 0, &volume);
	assert_int_equal(rbx_state_volume_get(state, 0, &found), -EBADMSG);
	volume = volume_of(3);
	volume.record.member_flags[0] = RBX_WIRE_MEMBER_OUT; /* no member votes */
	rbx_state_volume_put(state, 0, &volume);
	assert_int_equal(rbx_state_volume_get(state, 0, &found), -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_make, memory_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_put_is_got),
		TEST(volume_that_is_torn_is_as_before_or_after),
		TEST(slab_and_head_that_are_torn_are_as_before_or_after),
		TEST(damage_is_found),
		TEST(epochs_that_leave_no_next_one_are_no_good),
		TEST(entry_of_another_place_is_no_good),
		TEST(record_that_nobody_accepts_is_no_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
