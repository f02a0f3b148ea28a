/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_test.c - what a client that opens a named volume takes from servers that are wrong, or
 * lie.
 */
#include "client/named.h"
#include "client/removal.h"
#include "client/returned.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/session.h"
#include "core/upkeep_state.h"

#define ID 77

/* ---- A server, in the place of client/session.c and core/loans.c ------------------------*/

static struct {
	struct rbx_wire_message asked, answer;
	uint64_t incarnation; /* 0: 1 */
	uint32_t unmapped_count;
	int unmap_err;
	uint32_t adopted_count;
	bool labels_end; /* the first answer has all of them */
} server;

int rbx_session_talk(struct rbx_session *session, struct rbx_wire_message *message)
{
	(void)session;
	/* Labels go on for ever, if there are any. */
	if (message->type == RBX_WIRE_LABELS && !server.labels_end)
		server.answer.labels.next = message->cursor + server.answer.labels.count;
	server.asked = *message;
	*message = server.answer;
	return 0;
}

int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan)
{
	(void)session;
	(void)loan;
	server.unmapped_count++;
	return server.unmap_err;
}

uint64_t rbx_session_incarnation(const struct rbx_session *session)
{
	(void)session;
	return server.incarnation ?: 1;
}

const char *rbx_session_name(const struct rbx_session *session)
{
	(void)session;
	return "the server";
}

int rbx_upkeep_adopt(struct rbx_upkeep *upkeep, uint32_t number, uint64_t label,
		     const struct rbx_loan *loan)
{
	(void)upkeep;
	(void)number;
	(void)label;
	(void)loan;
	server.adopted_count++;
	return 0;
}

int rbx_upkeep_returned(struct rbx_upkeep *upkeep, uint32_t number, uint64_t label,
			const struct rbx_loan *loan)
{
	return rbx_upkeep_adopt(upkeep, number, label, loan);
}

void rbx_upkeep_found_intent(struct rbx_upkeep *upkeep, uint64_t label, uint64_t word,
			     uint64_t behind)
{
	(void)upkeep;
	(void)label;
	(void)word;
	(void)behind;
}

/* ---- What it says ------------------------------------------------------------------------*/

static struct rbx_wire_volume volume_of(uint64_t id, uint64_t epoch)
{
	struct rbx_wire_volume volume = {
		.record = { .name = "db", .volume_id = id, .epoch = epoch, .version = 1,
			    .slab_bytes = 1u << 20, .size_bytes = 8u << 20,
			    .replicas = 1, .members_count = 1,
			    .incarnations = { 1 } },
		.promised_epoch = epoch,
	};

	return volume;
}

/* It has heard of a volume of epoch 5, and begins to open it. */
static struct rbx_named begun(void)
{
	const struct rbx_wire_volume volume = volume_of(ID, 5);
	struct rbx_named named;

	memset(&server, 0, sizeof(server));
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	assert_int_equal(named.epoch, 6);
	return named;
}

static int grants(struct rbx_named *named, const struct rbx_wire_volume *volume)
{
	server.answer = (struct rbx_wire_message){ .type = RBX_WIRE_VOLUME, .volume = *volume };
	return rbx_named_grant(named, NULL);
}

/* ---- Tests -------------------------------------------------------------------------------*/

/* The host has such a name, which has been set to it without a resolver. */
static void holder_that_cannot_be_sent_is_made_readable(void **state)
{
	const struct rbx_wire_volume volume = volume_of(ID, 5);
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	struct rbx_named named;

	(void)state;
	memset(&server, 0, sizeof(server));
	assert_int_equal(rbx_named_init(&named, "db", "h\xc3\xb6st\n\x7f, process 7"), 0);
	assert_string_equal(named.holder, "h??st??, process 7");
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	assert_int_equal(grants(&named, &volume), 0);
	assert_int_equal(rbx_wire_encode(&server.asked, bytes), 64 + 152);
}

static void two_volumes_of_one_name_are_not_one(void **state)
{
	struct rbx_wire_volume volume = volume_of(ID, 5);
	struct rbx_named named;

	(void)state;
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	volume = volume_of(ID + 1, 9);
	assert_int_equal(rbx_named_heard(&named, 1, &volume), -EEXIST);
	/* It is being made. */
	volume.record.epoch = volume.record.version = volume.record.members_count = 0;
	assert_int_equal(rbx_named_heard(&named, 1, &volume), -EEXIST);
	assert_int_equal(named.record.volume_id, ID);
	assert_int_equal(named.highest_epoch, 5);
}

static void epoch_that_leaves_no_next_one_is_refused(void **state)
{
	struct rbx_wire_volume volume = volume_of(ID, 5);
	struct rbx_named named;

	(void)state;
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	volume.promised_epoch = UINT64_MAX;
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_int_equal(rbx_named_begin(&named, false), -EPROTO);
}

static void replicas_that_cannot_be_are_refused(void **state)
{
	struct rbx_wire_volume volume = volume_of(ID, 5);
	struct rbx_named named;

	(void)state;
	volume.record.replicas = RBX_REPLICAS_MAX + 1;
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_int_equal(rbx_named_begin(&named, false), -EPROTO);
	named.is_removed = true; /* it can be removed */
	assert_int_equal(rbx_named_begin(&named, false), 0);
}

static void record_that_cannot_be_is_refused(void **state)
{
	struct rbx_wire_volume volume = volume_of(ID, 5);
	struct rbx_named named = begun();

	(void)state;
	volume.record.volume_id = ID + 1;
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume = volume_of(ID, 6); /* ours, and it was never proposed */
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume = volume_of(ID, 5);
	volume.record.flags = RBX_WIRE_REMOVED; /* such a server grants nothing */
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume = volume_of(ID, 5);
	volume.record.replicas++; /* that never changes */
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume = volume_of(ID, 5);
	volume.record.slab_bytes *= 2; /* nor that */
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume = volume_of(ID, 5);
	volume.record.version = 5;
	volume.record.keep_s = 1; /* the others would drop the volume */
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume.record.keep_s = 0;
	strcpy(volume.record.owner, "other");
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume = volume_of(ID, 5);
	volume.record.version = 5;
	volume.record.size_bytes--; /* it only grows */
	assert_int_equal(grants(&named, &volume), -EPROTO);
	volume = volume_of(ID, 5);
	volume.record.version = UINT64_MAX;
	assert_int_equal(grants(&named, &volume), -EPROTO);
	assert_int_equal(rbx_named_take_newest(&named), -EHOSTUNREACH);
	volume.record.version = 3;
	assert_int_equal(grants(&named, &volume), 0);
	assert_int_equal(rbx_named_take_newest(&named), 0);
	assert_int_equal(named.record.epoch, 6);
	assert_int_equal(named.record.version, 4);
}

static void record_that_differs_from_the_same_version_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t by;
	} lies[] = {
		{ offsetof(struct rbx_wire_record, name), 1 },
		{ offsetof(struct rbx_wire_record, size_bytes) + 2, 1 }, /* larger or smaller */
		{ offsetof(struct rbx_wire_record, size_bytes) + 2, 0x88 },
		{ offsetof(struct rbx_wire_record, flags), RBX_WIRE_RESERVED },
		{ offsetof(struct rbx_wire_record, flags), RBX_WIRE_EVEN },
		{ offsetof(struct rbx_wire_record, flags), RBX_WIRE_LOST },
		{ offsetof(struct rbx_wire_record, copies), 1 },
		{ offsetof(struct rbx_wire_record, incarnations), 2 },
		{ offsetof(struct rbx_wire_record, member_flags), RBX_WIRE_MEMBER_WAS_IN },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct rbx_wire_volume truth = volume_of(ID, 5), lie = truth;
		struct rbx_named named = begun();

		((uint8_t *)&lie.record)[lies[i].at] ^= lies[i].by;
		assert_int_equal(grants(&named, &lie), -EPROTO);
		assert_int_equal(grants(&named, &truth), 0);
		assert_int_equal(rbx_named_take_newest(&named), 0);
		truth.record.epoch = named.epoch;
		truth.record.version++;
		assert_memory_equal(&named.record, &truth.record, sizeof(truth.record));
	}
}

/* Nobody has heard of it when it was looked for, and two say different things of it now. */
static void newer_record_is_compared_with_what_others_say_of_it(void **state)
{
	struct rbx_wire_volume old = volume_of(ID, 5), grown;
	struct rbx_named named;

	(void)state;
	old.record.members_count = 3;
	old.record.incarnations[1] = 2;
	old.record.incarnations[2] = 3;
	memset(&server, 0, sizeof(server));
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_named_heard(&named, 1, &old), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	grown = old;
	grown.record.version++;
	grown.record.size_bytes *= 2;
	assert_int_equal(grants(&named, &grown), 0);
	server.incarnation = 2;
	grown.record.size_bytes *= 2;
	assert_int_equal(grants(&named, &grown), -EPROTO);
	grown.record.size_bytes /= 2;
	assert_int_equal(grants(&named, &grown), 0);
	/* What was heard counts also while an older record is the one to be proposed. */
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_named_heard(&named, 1, &grown), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	assert_int_equal(grants(&named, &old), 0);
	server.incarnation = 3;
	grown.record.size_bytes -= 1u << 20;
	assert_int_equal(grants(&named, &grown), -EPROTO);
	old.record.flags = RBX_WIRE_RESERVED; /* an older one may be smaller, and no more */
	assert_int_equal(grants(&named, &old), -EPROTO);
}

/* A change that was never chosen may be at a server whose answer is not needed. */
static void record_is_that_of_the_members_that_are_proposed(void **state)
{
	struct rbx_wire_volume volume = volume_of(ID, 5);
	struct rbx_named named;

	(void)state;
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	volume.record.version = 8;
	volume.record.size_bytes = 2 << 20;
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	volume.record.version = 7;
	volume.record.size_bytes = 1 << 20;
	assert_int_equal(grants(&named, &volume), 0);
	assert_int_equal(rbx_named_take_newest(&named), 0);
	assert_int_equal(named.record.version, 8); /* one above */
	assert_int_equal(named.record.size_bytes, 1 << 20);
}

static void labels_without_end_are_refused(void **state)
{
	struct rbx_named named = begun();
	struct rbx_wire_labels *labels = &server.answer.labels;

	(void)state;
	server.answer.type = RBX_WIRE_LABELS_REPLY;
	assert_int_equal(rbx_named_find(&named, NULL, NULL, 0), 0); /* there are none */
	labels->count = RBX_WIRE_LABELS_MAX;
	for (uint32_t i = 0; i < labels->count; i++)
		labels->labels[i] = (struct rbx_wire_label){ .label = 1, .slab_id = 1,
							     .epoch = 1 };
	assert_int_equal(rbx_named_find(&named, NULL, NULL, 0), -EPROTO);
	assert_in_range(server.unmapped_count, 1, RBX_LENT_SLABS_MAX + RBX_WIRE_LABELS_MAX);
}

/* They were left by a client that died while the volume grew. */
static void slabs_beyond_the_end_of_a_reserved_volume_are_given_up(void **state)
{
	struct rbx_wire_labels *labels = &server.answer.labels;
	struct rbx_named named = begun();
	struct rbx_upkeep upkeep;

	(void)state;
	named.record.slab_bytes = 1 << 20;
	named.record.size_bytes = (1 << 20) + 4096; /* two slabs */
	named.record.flags = RBX_WIRE_RESERVED;
	server.labels_end = true;
	server.answer.type = RBX_WIRE_LABELS_REPLY;
	labels->count = 4;
	for (uint32_t i = 0; i < labels->count; i++)
		labels->labels[i] = (struct rbx_wire_label){
			.label = i + 1, .slab_id = i + 1, .epoch = 1, .is_complete = 1 };
	assert_int_equal(rbx_named_trim(&named, NULL), 2);
	assert_int_equal(server.unmapped_count, 2);
	assert_int_equal(server.adopted_count, 0);
	assert_int_equal(rbx_named_find(&named, NULL, &upkeep, 0), 0);
	assert_int_equal(server.unmapped_count, 4);
	assert_int_equal(server.adopted_count, 2);
	/* Of another volume they cannot be, and are judged as all others. */
	named.record.flags = 0;
	assert_int_equal(rbx_named_find(&named, NULL, &upkeep, 0), 0);
	assert_int_equal(server.adopted_count, 6);
	named.record.flags = RBX_WIRE_RESERVED;
	named.record.slab_bytes = 0; /* whatever a server says */
	assert_int_equal(rbx_named_trim(&named, NULL), 0);
	assert_int_equal(server.unmapped_count, 8);
}

/* Two of three servers are enough, and may answer first. */
static void newest_name_is_taken_whoever_answers_first(void **state)
{
	struct rbx_wire_volume old = volume_of(ID, 5), renamed;
	struct rbx_named named;

	(void)state;
	old.record.members_count = 3;
	old.record.incarnations[1] = 2;
	old.record.incarnations[2] = 3;
	renamed = old;
	strcpy(renamed.record.name, "new");
	renamed.record.version = 2;
	memset(&server, 0, sizeof(server));
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_named_heard(&named, 1, &old), 0);
	assert_false(named.has_two_names);
	assert_int_equal(rbx_named_heard(&named, 3, &renamed), 0);
	assert_true(named.has_two_names);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	assert_int_equal(grants(&named, &old), 0);
	server.incarnation = 2;
	assert_int_equal(grants(&named, &old), 0);
	server.incarnation = 3;
	assert_int_equal(grants(&named, &renamed), 0);
	assert_int_equal(rbx_named_take_newest(&named), 0);
	assert_string_equal(named.record.name, "new");
	assert_int_equal(named.record.epoch, 6);
}

static void removal_is_believed_by_the_id_alone(void **state)
{
	struct rbx_wire_volume volume;
	struct rbx_named named;

	(void)state;
	memset(&server, 0, sizeof(server));
	server.answer.type = RBX_WIRE_VOLUME;
	server.answer.volume = volume_of(ID, 5);
	server.answer.volume.record.flags = RBX_WIRE_REMOVED;
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_named_look(&named, NULL, &volume), -EPROTO);
	named.record.volume_id = ID;
	assert_int_equal(rbx_named_look_for_id(&named, NULL, &volume), 0);
	assert_true(volume.record.flags & RBX_WIRE_REMOVED);
}

/* Another volume has the name by now. */
static void volume_is_opened_after_a_removal_of_another_was_finished(void **state)
{
	static struct rbx_crowd crowd = { .count = 1, .has_removed = { true } };
	const struct rbx_wire_volume volume = volume_of(ID + 1, 5);
	struct rbx_named named = begun();

	(void)state;
	named.record.flags = RBX_WIRE_REMOVED;
	assert_int_equal(rbx_removal_finish(&named, &crowd), 0);
	assert_true(named.was_left);
	rbx_named_hear_nothing(&named);
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	assert_int_equal(grants(&named, &volume), 0);
	assert_int_equal(server.asked.volume_open.mode, RBX_WIRE_OPEN_WRITE);
}

/* One of two has the first record, the other has none. Whoever was to have the first one forget it
 * has died when it was granted that. A third member that is away may have a later record. */
static void volume_is_half_made_whoever_was_granted_it_in_vain(void **state)
{
	static struct rbx_crowd crowd = { .count = 1 };
	struct rbx_wire_volume volume = volume_of(ID, 1);
	struct rbx_named named;

	(void)state;
	memset(&server, 0, sizeof(server));
	server.incarnation = 1; /* the double says it of each session */
	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	volume.record.members_count = 1;
	assert_int_equal(rbx_named_heard(&named, 1, &volume), 0);
	assert_false(rbx_removal_is_left(&named, &crowd, false));
	assert_true(rbx_removal_is_left(&named, &crowd, true));
	named.highest_epoch = 3;
	assert_true(rbx_removal_is_left(&named, &crowd, true));
	named.record.members_count = 2;
	named.record.incarnations[1] = 2;
	assert_false(rbx_removal_is_left(&named, &crowd, true));
	named.highest_epoch = 1;
	assert_true(rbx_removal_is_left(&named, &crowd, true));
	named.record.epoch = 2;
	assert_false(rbx_removal_is_left(&named, &crowd, true));
}

static uint32_t given_back_count(int err)
{
	const struct rbx_wire_label label = { .label = 1 };
	struct rbx_loan loan = { .slab_id = 1 };
	struct rbx_returned returned = { 0 };
	int i;

	memset(&server, 0, sizeof(server));
	server.unmap_err = err;
	for (i = 0; i < 3; i++)
		assert_int_equal(rbx_returned_note(&returned, &label, &loan), 0);
	rbx_returned_give_back(&returned, NULL);
	assert_null(returned.slabs);
	return server.unmapped_count;
}

/* It has refused one, and may take the others. One that is away takes none. */
static void what_a_server_refuses_does_not_keep_the_rest_there(void **state)
{
	(void)state;
	assert_int_equal(given_back_count(0), 3);
	assert_int_equal(given_back_count(-EINVAL), 3);
	assert_int_equal(given_back_count(-ENOTCONN), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_name_is_taken_whoever_answers_first),
		cmocka_unit_test(holder_that_cannot_be_sent_is_made_readable),
		cmocka_unit_test(two_volumes_of_one_name_are_not_one),
		cmocka_unit_test(epoch_that_leaves_no_next_one_is_refused),
		cmocka_unit_test(replicas_that_cannot_be_are_refused),
		cmocka_unit_test(record_that_cannot_be_is_refused),
		cmocka_unit_test(record_that_differs_from_the_same_version_is_refused),
		cmocka_unit_test(newer_record_is_compared_with_what_others_say_of_it),
		cmocka_unit_test(removal_is_believed_by_the_id_alone),
		cmocka_unit_test(volume_is_opened_after_a_removal_of_another_was_finished),
		cmocka_unit_test(volume_is_half_made_whoever_was_granted_it_in_vain),
		cmocka_unit_test(record_is_that_of_the_members_that_are_proposed),
		cmocka_unit_test(labels_without_end_are_refused),
		cmocka_unit_test(what_a_server_refuses_does_not_keep_the_rest_there),
		cmocka_unit_test(slabs_beyond_the_end_of_a_reserved_volume_are_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
