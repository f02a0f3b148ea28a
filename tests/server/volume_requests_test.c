/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_requests_test.c - the requests about named volumes: what they tell, and whom they are
 * refused to.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/acceptor.h"
#include "tests/server/named_volume.h"
#include "tests/server/raw_client.h"

static void older_epochs_are_refused(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", 1, NULL), -ESTALE);
	named_expect(&two.world, two.qp, &two.loan); /* it is still there */
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_CREATE, "db", 9, NULL), -EEXIST);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "other", 9, NULL), -ENOENT);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_true(volume.is_open);
	/* Its own epoch, an older version: it comes late, and changes nothing. */
	accept = named_accept_of(&volume, 1, 3);
	assert_int_equal(rbx_session_talk(two.writer, &accept), 0);
	accept = named_accept_of(&volume, 1, 2);
	assert_int_equal(rbx_session_talk(two.writer, &accept), 0);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_int_equal(volume.record.version, 3);
	accept = named_accept_of(&volume, 2, 4); /* an epoch that nobody was promised */
	assert_int_equal(rbx_session_talk(two.writer, &accept), -ESTALE);
	named_two_end(&two);
}

/* The numbers would be used up, and nobody could open the volume any more. */
static void epochs_and_versions_that_are_out_of_reach_are_refused(void **state)
{
	const uint64_t step = RBX_MEMBERSHIP_STEP_MAX;
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", UINT64_MAX, NULL),
			 -ESTALE);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", step + 2, NULL),
			 -ESTALE);
	named_expect(&two.world, two.qp, &two.loan);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", step + 1, &volume), 0);
	accept = named_accept_of(&volume, step + 1, step + 2);
	assert_int_equal(rbx_session_talk(two.other, &accept), -ESTALE);
	accept = named_accept_of(&volume, step + 1, step + 1);
	assert_int_equal(rbx_session_talk(two.other, &accept), 0);
	named_two_end(&two);
}

/* As a client does that looked while the volume was made. */
static void volume_that_is_being_made_is_its_makers(void **state)
{
	struct rbx_session *maker, *other;
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct world world;

	(void)state;
	world_begin(&world);
	maker = world_session(&world);
	assert_int_equal(named_open(maker, RBX_WIRE_OPEN_CREATE, "db", 1, &volume), 0);
	other = world_session(&world);
	assert_int_equal(named_open(other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), -ENOENT);
	accept = named_accept_of(&volume, 1, 1);
	assert_int_equal(rbx_session_talk(maker, &accept), 0);
	assert_int_equal(named_open(other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	rbx_session_close(other);
	rbx_session_close(maker);
	world_stop(&world);
}

/* It was removed, and another one has its name. */
static void volume_that_was_not_meant_is_not_opened(void **state)
{
	struct rbx_wire_message open = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .holder = "late", .writer_epoch = 9,
				 .volume_id = NAMED_ID + 1, .mode = RBX_WIRE_OPEN_WRITE },
	};
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(rbx_session_talk(two.other, &open), -ENOENT);
	named_expect(&two.world, two.qp, &two.loan);
	named_two_end(&two);
}

/* A key is of no use without a queue pair that was granted the volume. */
static void keys_are_of_no_use_to_others(void **state)
{
	struct named_two two;
	struct rbx_qp *qp;

	(void)state;
	named_two_begin(&two);
	qp = world_qp(&two.world, two.other);
	memset(two.world.memory, 0xee, WORLD_SLAB_BYTES);
	assert_int_not_equal(world_transfer(&two.world, qp, RBX_OP_WRITE, &two.loan), 0);
	named_expect(&two.world, two.qp, &two.loan);
	two.world.choice.ops->destroy_qp(qp);
	named_two_end(&two);
}

static void volumes_are_listed(void **state)
{
	static const char *const names[] = { "a", "b", "c" };
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_LIST };
	struct rbx_session *sessions[3], *lister;
	struct world world;
	int i;

	(void)state;
	world_begin(&world);
	for (i = 0; i < 3; i++) {
		sessions[i] = world_session(&world);
		assert_int_equal(named_open(sessions[i], RBX_WIRE_OPEN_CREATE, names[i], 1,
					    NULL),
				 0);
	}
	rbx_session_close(sessions[1]); /* a hole in the table */
	lister = world_session(&world);
	assert_int_equal(rbx_session_talk(lister, &m), 0);
	assert_string_equal(m.volume.record.name, "a");
	m = (struct rbx_wire_message){ .type = RBX_WIRE_VOLUME_LIST, .cursor = m.volume.next };
	assert_int_equal(rbx_session_talk(lister, &m), 0);
	assert_string_equal(m.volume.record.name, "c");
	m = (struct rbx_wire_message){ .type = RBX_WIRE_VOLUME_LIST, .cursor = m.volume.next };
	assert_int_equal(rbx_session_talk(lister, &m), -ENOENT);
	m = (struct rbx_wire_message){ .type = RBX_WIRE_VOLUME_LIST, .cursor = UINT64_MAX };
	assert_int_equal(rbx_session_talk(lister, &m), -ENOENT);
	rbx_session_close(sessions[0]);
	rbx_session_close(sessions[2]);
	rbx_session_close(lister);
	world_stop(&world);
}

/* More than one message has room for. */
static void all_labels_are_told(void **state)
{
	struct rbx_wire_message complete = { .type = RBX_WIRE_SLAB_COMPLETE };
	enum { SLABS = RBX_WIRE_LABELS_MAX + 5 };
	bool seen[SLABS + 1] = { false };
	struct rbx_wire_labels labels = { 0 };
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	uint32_t i, count = 0;

	(void)state;
	world_options(&world);
	world.options.memory_bytes = SLABS * WORLD_SLAB_BYTES;
	world_start(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	for (i = 1; i <= SLABS; i++)
		assert_int_equal(rbx_session_map_for(
					 session, &(struct rbx_wire_map){ i, i % 2, 0 }, &loan),
				 0);
	complete.slab_id = loan.slab_id; /* of the last one, which has an odd label */
	complete.epoch = loan.epoch + 1;
	assert_int_equal(rbx_session_talk(session, &complete), -ESTALE);
	do {
		labels = named_labels(session, labels.next);
		for (i = 0; i < labels.count; i++) {
			const struct rbx_wire_label *label = &labels.labels[i];

			assert_in_range(label->label, 1, SLABS);
			assert_false(seen[label->label]);
			seen[label->label] = true;
			assert_int_equal(label->is_complete, label->label % 2);
			count++;
			if (label->is_complete)
				continue;
			complete = (struct rbx_wire_message){ .type = RBX_WIRE_SLAB_COMPLETE,
							      .slab_id = label->slab_id,
							      .epoch = label->epoch };
			assert_int_equal(rbx_session_talk(session, &complete), 0);
		}
	} while (labels.next);
	assert_int_equal(count, SLABS);
	labels = named_labels(session, 0);
	for (i = 0; i < labels.count; i++)
		assert_int_equal(labels.labels[i].is_complete, 1);
	/* And may be so no more. */
	complete.type = RBX_WIRE_SLAB_INCOMPLETE;
	complete.slab_id = labels.labels[0].slab_id;
	complete.epoch = labels.labels[0].epoch + 1;
	assert_int_equal(rbx_session_talk(session, &complete), -ESTALE);
	complete = (struct rbx_wire_message){ .type = RBX_WIRE_SLAB_INCOMPLETE,
					      .slab_id = labels.labels[0].slab_id,
					      .epoch = labels.labels[0].epoch };
	assert_int_equal(rbx_session_talk(session, &complete), 0);
	labels = named_labels(session, 0);
	for (i = 0; i < labels.count; i++)
		assert_int_equal(labels.labels[i].is_complete, i > 0);
	rbx_session_close(session);
	world_stop(&world);
}

static void what_needs_a_volume_is_refused_without_one(void **state)
{
	static const uint16_t types[] = { RBX_WIRE_VOLUME_REMOVE, RBX_WIRE_LABELS,
					  RBX_WIRE_SLAB_COMPLETE, RBX_WIRE_SLAB_INCOMPLETE,
					  RBX_WIRE_SLAB_MAP, RBX_WIRE_INTENTS };
	struct raw_client raw;
	struct world world;
	size_t i;

	(void)state;
	world_begin(&world);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct rbx_wire_message m = { .type = types[i] };

		if (m.type == RBX_WIRE_SLAB_COMPLETE || m.type == RBX_WIRE_SLAB_INCOMPLETE)
			m.epoch = m.slab_id = 1;
		if (m.type == RBX_WIRE_SLAB_MAP)
			m.map.label = 1;
		if (m.type == RBX_WIRE_INTENTS)
			m.intents = (struct rbx_wire_intents){ 1, { { 1, 1, 1, 0 } } };
		raw_client_arrive(&raw, &world);
		raw_client_enter(&raw);
		raw_client_send(&raw, &m);
		raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
		raw_client_leave(&raw);
	}
	world_stop(&world);
}

/* Slabs of its own and those of a volume would be in two domains. */
static void session_is_for_one_volume_and_nothing_else(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), -EPROTO);
	assert_int_equal(rbx_session_unmap(session, &loan), 0);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "more", 1, NULL), -EPROTO);
	assert_int_not_equal(rbx_session_map(session, &loan), 0); /* it was cut off */
	rbx_session_close(session);
	world_stop(&world);
}

/* ---- Owners ------------------------------------------------------------------*/

static void enter_as(struct raw_client *raw, struct world *world, const char *name,
		     const char *secret)
{
	raw_client_arrive(raw, world);
	raw_client_prove_as(raw, name, secret);
	assert_true(raw_client_hear(raw, &raw->welcome));
}

static struct rbx_wire_message ask(struct raw_client *raw, struct rbx_wire_message *message)
{
	struct rbx_wire_message answer;

	raw_client_send(raw, message);
	assert_true(raw_client_hear(raw, &answer));
	return answer;
}

/* Who a volume belongs to is decided by the credential. */
static void volume_of_another_owner_is_refused(void **state)
{
	struct rbx_wire_message open = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "gift", .holder = "alice", .writer_epoch = 1,
				 .volume_id = NAMED_ID + 1, .mode = RBX_WIRE_OPEN_CREATE },
	};
	struct rbx_wire_message look = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .mode = RBX_WIRE_OPEN_LOOK },
	};
	struct rbx_wire_message take = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .holder = "bob", .writer_epoch = 9,
				 .volume_id = NAMED_ID, .mode = RBX_WIRE_OPEN_WRITE },
	};
	struct rbx_wire_message list = { .type = RBX_WIRE_VOLUME_LIST }, answer, accept;
	struct raw_client alice, bob;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secrets_file,
	       world_secret_file("alice:correct horse battery\nbob:staple staple staple\n", 0600));
	world_start(&world);
	enter_as(&alice, &world, "alice", "correct horse battery");
	answer = ask(&alice, &open);
	assert_int_equal(answer.type, RBX_WIRE_VOLUME);
	assert_string_equal(answer.volume.record.owner, "alice");
	accept = named_accept_of(&answer.volume, 1, 1);
	memset(accept.record.owner, 0, sizeof(accept.record.owner));
	strcpy(accept.record.owner, "bob"); /* it cannot be given away */
	assert_int_equal(ask(&alice, &accept).status, RBX_REASON_MALFORMED);
	raw_client_leave(&alice);

	enter_as(&alice, &world, "alice", "correct horse battery");
	open.request_id = 0;
	memset(open.volume_open.name, 0, sizeof(open.volume_open.name));
	strcpy(open.volume_open.name, "db");
	open.volume_open.volume_id = NAMED_ID;
	answer = ask(&alice, &open);
	accept = named_accept_of(&answer.volume, 1, 1);
	assert_int_equal(ask(&alice, &accept).type, RBX_WIRE_VOLUME_DONE);

	enter_as(&bob, &world, "bob", "staple staple staple");
	assert_int_equal(ask(&bob, &look).status, RBX_REASON_NOT_OWNER);
	assert_int_equal(ask(&bob, &take).status, RBX_REASON_NOT_OWNER);
	assert_int_equal(ask(&bob, &list).status, RBX_REASON_NO_VOLUME);
	raw_client_leave(&bob);
	accept.request_id = 0;
	accept.record.version = 2;
	accept.record.flags ^= RBX_WIRE_CHECKSUMS; /* it has them from the beginning or never */
	assert_int_equal(ask(&alice, &accept).status, RBX_REASON_MALFORMED);
	raw_client_leave(&alice);
	world_stop(&world);
}

/* Others are told of it: of a volume without slabs, with too many of them, or too many replicas. */
static void record_of_a_volume_that_cannot_be_is_refused(void **state)
{
	struct rbx_wire_message open = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .holder = "alice", .writer_epoch = 1,
				 .volume_id = NAMED_ID, .mode = RBX_WIRE_OPEN_CREATE },
	};
	struct rbx_wire_message answer, accept;
	struct raw_client alice;
	struct world world;
	uint32_t i;

	(void)state;
	world_options(&world);
	strcpy(world.options.secrets_file, world_secret_file("alice:correct horse battery\n", 0600));
	world_start(&world);
	for (i = 0; i < 5; i++) {
		enter_as(&alice, &world, "alice", "correct horse battery");
		open.request_id = 0;
		answer = ask(&alice, &open);
		assert_int_equal(answer.type, RBX_WIRE_VOLUME);
		accept = named_accept_of(&answer.volume, 1, 1);
		if (i == 0)
			accept.record.slab_bytes = 0;
		else if (i == 1)
			accept.record.size_bytes = UINT64_MAX;
		else if (i == 2)
			accept.record.replicas = 0;
		else if (i == 3)
			accept.record.replicas = RBX_REPLICAS_MAX + 1;
		answer = ask(&alice, &accept);
		if (i == 4)
			assert_int_equal(answer.type, RBX_WIRE_VOLUME_DONE);
		else
			assert_int_equal(answer.status, RBX_REASON_MALFORMED);
		raw_client_leave(&alice);
	}
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(older_epochs_are_refused),
		cmocka_unit_test(epochs_and_versions_that_are_out_of_reach_are_refused),
		cmocka_unit_test(volume_that_is_being_made_is_its_makers),
		cmocka_unit_test(volume_that_was_not_meant_is_not_opened),
		cmocka_unit_test(keys_are_of_no_use_to_others),
		cmocka_unit_test(volumes_are_listed),
		cmocka_unit_test(all_labels_are_told),
		cmocka_unit_test(what_needs_a_volume_is_refused_without_one),
		cmocka_unit_test(session_is_for_one_volume_and_nothing_else),
		cmocka_unit_test(volume_of_another_owner_is_refused),
		cmocka_unit_test(record_of_a_volume_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
