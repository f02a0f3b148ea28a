/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volumes_test.c - a named volume outlives its clients, and one of them at a time can
 * reach it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/state.h"
#include "tests/server/raw_client.h"
#include "tests/server/world.h"

#define ID 77

/* ---- Requests of a session -----------------------------------------------------*/

static int open_volume(struct rbx_session *session, enum rbx_wire_open_mode mode,
		       const char *name, uint64_t epoch, struct rbx_wire_volume *volume)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .mode = mode, .writer_epoch = epoch },
	};
	int err;

	strcpy(m.volume_open.name, name);
	if (mode != RBX_WIRE_OPEN_LOOK)
		strcpy(m.volume_open.holder, "a test");
	if (mode == RBX_WIRE_OPEN_CREATE)
		m.volume_open.volume_id = ID;
	err = rbx_session_talk(session, &m);
	if (!err && volume)
		*volume = m.volume;
	return err;
}

static struct rbx_wire_message accept_of(const struct rbx_wire_volume *volume, uint64_t epoch,
					 uint64_t version)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_ACCEPT,
		.record = volume->record,
	};

	m.record.epoch = epoch;
	m.record.version = version;
	m.record.size_bytes = 8 * WORLD_SLAB_BYTES;
	m.record.slab_bytes = WORLD_SLAB_BYTES;
	m.record.keep_s = UINT64_MAX;
	m.record.replicas = 1;
	m.record.members_count = 1;
	m.record.incarnations[0] = 4711;
	return m;
}

/* With one slab, whose contents are those of world->memory. */
static struct rbx_session *make_volume(struct world *world, struct rbx_qp **qp,
				       struct rbx_loan *loan)
{
	const struct rbx_wire_map map = { .label = 3, .is_complete = 1 };
	struct rbx_session *session = world_session(world);
	struct rbx_wire_volume volume;
	struct rbx_wire_message accept;

	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_CREATE, "db", 1, &volume), 0);
	assert_int_equal(volume.record.epoch, 0);
	accept = accept_of(&volume, 1, 1);
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	assert_int_equal(accept.writer_epoch, 1);
	assert_int_equal(rbx_session_map_for(session, &map, loan), 0);
	*qp = world_qp(world, session);
	memset(world->memory, 0x5c, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(world, *qp, RBX_OP_WRITE, loan), 0);
	return session;
}

static struct rbx_wire_labels labels_of(struct rbx_session *session, uint64_t cursor)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_LABELS, .cursor = cursor };

	assert_int_equal(rbx_session_talk(session, &m), 0);
	return m.labels;
}

static struct rbx_loan loan_of(const struct rbx_wire_label *label)
{
	return (struct rbx_loan){ label->slab_id, label->epoch, label->remote_addr, label->rkey };
}

/* Reads the slab that make_volume() wrote. */
static void expect_contents(struct world *world, struct rbx_qp *qp, const struct rbx_loan *loan)
{
	size_t i;

	memset(world->memory, 0, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(world, qp, RBX_OP_READ, loan), 0);
	for (i = 0; i < WORLD_SLAB_BYTES; i++)
		assert_int_equal(world->memory[i], 0x5c);
}

static uint32_t slabs_lent(struct world *world)
{
	return (uint32_t)world_stats(world).slabs_lent;
}

static bool nothing_is_lent(struct world *world)
{
	struct rbx_lender_counts counts;

	pthread_mutex_lock(&world->server->lock);
	rbx_lender_counts(world->server->lender, &counts);
	pthread_mutex_unlock(&world->server->lock);
	return !counts.slabs_lent && !counts.slabs_ending;
}

static void world_begin(struct world *world)
{
	world_options(world);
	world_start(world);
}

/* ---- Tests -----------------------------------------------------------------------*/

static void contents_outlive_a_client(void **state)
{
	struct rbx_session *session;
	struct rbx_wire_volume volume;
	struct rbx_wire_labels labels;
	struct rbx_loan loan, found;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = make_volume(&world, &qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	assert_int_equal(slabs_lent(&world), 1);

	session = world_session(&world);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_int_equal(volume.promised_epoch, 1);
	assert_false(volume.is_open);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_WRITE, "db", 2, &volume), 0);
	assert_int_equal(volume.record.volume_id, ID);
	assert_int_equal(volume.record.size_bytes, 8 * WORLD_SLAB_BYTES);
	assert_int_equal(volume.record.version, 1);
	assert_string_equal(volume.holder, "a test");
	labels = labels_of(session, 0);
	assert_int_equal(labels.count, 1);
	assert_int_equal(labels.next, 0);
	assert_int_equal(labels.labels[0].label, 3);
	assert_int_equal(labels.labels[0].is_complete, 1);
	found = loan_of(&labels.labels[0]);
	assert_int_equal(found.epoch, loan.epoch);
	qp = world_qp(&world, session);
	expect_contents(&world, qp, &found);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

/* The former writer is not dead: it was only slow. */
static void former_writer_is_shut_out_before_the_next_one_is_in(void **state)
{
	struct rbx_session *former, *next;
	struct rbx_qp *former_qp, *next_qp;
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct rbx_loan loan, more;
	struct world world;

	(void)state;
	world_begin(&world);
	former = make_volume(&world, &former_qp, &loan);
	next = world_session(&world);
	assert_int_equal(open_volume(next, RBX_WIRE_OPEN_WRITE, "db", 2, &volume), 0);
	memset(world.memory, 0xee, WORLD_SLAB_BYTES);
	assert_int_not_equal(world_transfer(&world, former_qp, RBX_OP_WRITE, &loan), 0);
	assert_int_not_equal(world_transfer(&world, former_qp, RBX_OP_READ, &loan), 0);
	assert_int_not_equal(rbx_session_map_for(former, &(struct rbx_wire_map){ 4, 1 }, &more),
			     0);
	accept = accept_of(&volume, 1, 2);
	assert_int_not_equal(rbx_session_talk(former, &accept), 0);
	assert_int_equal(rbx_session_resume(former, rbx_now_ns() + 5000000000ull), -ESTALE);
	next_qp = world_qp(&world, next);
	expect_contents(&world, next_qp, &loan);
	world.choice.ops->destroy_qp(former_qp);
	world.choice.ops->destroy_qp(next_qp);
	rbx_session_close(former);
	rbx_session_close(next);
	assert_int_equal(slabs_lent(&world), 1);
	world_stop(&world);
}

static void older_epochs_are_refused(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_session *writer, *late;
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	writer = make_volume(&world, &qp, &loan);
	late = world_session(&world);
	assert_int_equal(open_volume(late, RBX_WIRE_OPEN_WRITE, "db", 1, NULL), -ESTALE);
	expect_contents(&world, qp, &loan); /* it is still there */
	assert_int_equal(open_volume(late, RBX_WIRE_OPEN_CREATE, "db", 9, NULL), -EEXIST);
	assert_int_equal(open_volume(late, RBX_WIRE_OPEN_WRITE, "other", 9, NULL), -ENOENT);
	assert_int_equal(open_volume(late, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_true(volume.is_open);
	/* Its own epoch, an older version: it comes late, and changes nothing. */
	accept = accept_of(&volume, 1, 3);
	assert_int_equal(rbx_session_talk(writer, &accept), 0);
	accept = accept_of(&volume, 1, 2);
	assert_int_equal(rbx_session_talk(writer, &accept), 0);
	assert_int_equal(open_volume(late, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_int_equal(volume.record.version, 3);
	accept = accept_of(&volume, 2, 4); /* an epoch that nobody was promised */
	assert_int_equal(rbx_session_talk(writer, &accept), -ESTALE);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(late);
	rbx_session_close(writer);
	world_stop(&world);
}

/* A key is of no use without a queue pair that was granted the volume. */
static void keys_are_of_no_use_to_others(void **state)
{
	struct rbx_session *writer, *other;
	struct rbx_qp *qp, *other_qp;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	writer = make_volume(&world, &qp, &loan);
	other = world_session(&world);
	other_qp = world_qp(&world, other);
	memset(world.memory, 0xee, WORLD_SLAB_BYTES);
	assert_int_not_equal(world_transfer(&world, other_qp, RBX_OP_WRITE, &loan), 0);
	expect_contents(&world, qp, &loan);
	world.choice.ops->destroy_qp(qp);
	world.choice.ops->destroy_qp(other_qp);
	rbx_session_close(other);
	rbx_session_close(writer);
	world_stop(&world);
}

static void volume_that_was_never_complete_is_forgotten(void **state)
{
	struct rbx_wire_map map = { .label = 1 };
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	assert_int_equal(rbx_session_map_for(session, &map, &loan), 0);
	rbx_session_close(session);
	world_wait(&world, nothing_is_lent);
	session = world_session(&world);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), -ENOENT);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	rbx_session_close(session);
	world_stop(&world);
}

static void removed_volume_gives_its_memory_back(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = make_volume(&world, &qp, &loan);
	assert_int_equal(rbx_session_talk(session, &remove), 0);
	assert_int_not_equal(world_transfer(&world, qp, RBX_OP_READ, &loan), 0);
	world.choice.ops->destroy_qp(qp);
	world_wait(&world, nothing_is_lent);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), -ENOENT);
	rbx_session_close(session);
	world_stop(&world);
}

static void volume_ends_when_its_time_is_over(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_session *session;
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = make_volume(&world, &qp, &loan);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	accept = accept_of(&volume, 1, 2);
	accept.record.keep_s = 0;
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	usleep(1200000); /* as long as it is open it stays */
	expect_contents(&world, qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_wait(&world, nothing_is_lent);
	world_stop(&world);
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
		assert_int_equal(open_volume(sessions[i], RBX_WIRE_OPEN_CREATE, names[i], 1,
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
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	for (i = 1; i <= SLABS; i++)
		assert_int_equal(rbx_session_map_for(
					 session, &(struct rbx_wire_map){ i, i % 2 }, &loan),
				 0);
	complete.slab_id = loan.slab_id; /* of the last one, which has an odd label */
	complete.epoch = loan.epoch + 1;
	assert_int_equal(rbx_session_talk(session, &complete), -ESTALE);
	do {
		labels = labels_of(session, labels.next);
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
	labels = labels_of(session, 0);
	for (i = 0; i < labels.count; i++)
		assert_int_equal(labels.labels[i].is_complete, 1);
	rbx_session_close(session);
	world_stop(&world);
}

/* What was lent before the open is not taken back, although the session was never told. */
static void resume_keeps_what_was_there_before(void **state)
{
	struct rbx_session *session;
	struct rbx_wire_labels labels;
	struct rbx_loan loan, found;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = make_volume(&world, &qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	session = world_session(&world);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	assert_int_equal(rbx_session_resume(session, rbx_now_ns() + 5000000000ull), 0);
	labels = labels_of(session, 0);
	assert_int_equal(labels.count, 1);
	found = loan_of(&labels.labels[0]);
	qp = world_qp(&world, session);
	expect_contents(&world, qp, &found);
	assert_int_equal(rbx_session_unmap(session, &found), 0);
	assert_int_equal(labels_of(session, 0).count, 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static void silent_writer_loses_its_session_and_not_the_volume(void **state)
{
	struct rbx_session *session;
	struct raw_client raw;
	struct world world;
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .holder = "silent", .writer_epoch = 2,
				 .mode = RBX_WIRE_OPEN_WRITE },
	};
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	struct rbx_qp *qp;

	(void)state;
	world_options(&world);
	world.options.lease_ms = 300;
	world_start(&world);
	session = make_volume(&world, &qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	raw_client_send(&raw, &m);
	assert_true(raw_client_hear(&raw, &m));
	assert_int_equal(m.type, RBX_WIRE_VOLUME);
	session = world_session(&world);
	do
		assert_int_equal(open_volume(session, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	while (volume.is_open);
	assert_string_equal(volume.holder, "silent");
	assert_int_equal(slabs_lent(&world), 1);
	rbx_session_close(session);
	raw_client_leave(&raw);
	world_stop(&world);
}

static void what_needs_a_volume_is_refused_without_one(void **state)
{
	static const uint16_t types[] = { RBX_WIRE_VOLUME_REMOVE, RBX_WIRE_LABELS,
					  RBX_WIRE_SLAB_COMPLETE, RBX_WIRE_SLAB_MAP };
	struct raw_client raw;
	struct world world;
	size_t i;

	(void)state;
	world_begin(&world);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct rbx_wire_message m = { .type = types[i] };

		if (m.type == RBX_WIRE_SLAB_COMPLETE)
			m.epoch = m.slab_id = 1;
		if (m.type == RBX_WIRE_SLAB_MAP)
			m.map.label = 1;
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
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), -EPROTO);
	assert_int_equal(rbx_session_unmap(session, &loan), 0);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	assert_int_equal(open_volume(session, RBX_WIRE_OPEN_CREATE, "more", 1, NULL), -EPROTO);
	assert_int_not_equal(rbx_session_map(session, &loan), 0); /* it was cut off */
	rbx_session_close(session);
	world_stop(&world);
}

/* Who a volume belongs to is decided by the credential. */
static void volume_of_another_owner_is_refused(void **state)
{
	struct rbx_wire_message open = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "gift", .holder = "alice", .writer_epoch = 1,
				 .volume_id = ID, .mode = RBX_WIRE_OPEN_CREATE },
	};
	struct rbx_wire_message look = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .mode = RBX_WIRE_OPEN_LOOK },
	};
	struct rbx_wire_message take = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .holder = "bob", .writer_epoch = 9,
				 .mode = RBX_WIRE_OPEN_WRITE },
	};
	struct rbx_wire_message list = { .type = RBX_WIRE_VOLUME_LIST }, answer, accept;
	struct raw_client alice, bob;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secrets_file,
	       world_secret_file("alice:correct horse battery\nbob:staple staple staple\n", 0600));
	world_start(&world);
	raw_client_arrive(&alice, &world);
	raw_client_prove_as(&alice, "alice", "correct horse battery");
	assert_true(raw_client_hear(&alice, &alice.welcome));
	raw_client_send(&alice, &open);
	assert_true(raw_client_hear(&alice, &answer));
	assert_int_equal(answer.type, RBX_WIRE_VOLUME);
	assert_string_equal(answer.volume.record.owner, "alice");
	accept = accept_of(&answer.volume, 1, 1);
	memset(accept.record.owner, 0, sizeof(accept.record.owner));
	strcpy(accept.record.owner, "bob"); /* it cannot be given away */
	raw_client_send(&alice, &accept);
	assert_true(raw_client_hear(&alice, &answer));
	assert_int_equal(answer.status, RBX_REASON_MALFORMED);
	raw_client_leave(&alice);

	raw_client_arrive(&alice, &world);
	raw_client_prove_as(&alice, "alice", "correct horse battery");
	assert_true(raw_client_hear(&alice, &alice.welcome));
	open.request_id = 0;
	memset(open.volume_open.name, 0, sizeof(open.volume_open.name));
	strcpy(open.volume_open.name, "db");
	raw_client_send(&alice, &open);
	assert_true(raw_client_hear(&alice, &answer));
	accept = accept_of(&answer.volume, 1, 1);
	raw_client_send(&alice, &accept);
	assert_true(raw_client_hear(&alice, &answer));
	assert_int_equal(answer.type, RBX_WIRE_VOLUME_DONE);

	raw_client_arrive(&bob, &world);
	raw_client_prove_as(&bob, "bob", "staple staple staple");
	assert_true(raw_client_hear(&bob, &bob.welcome));
	raw_client_send(&bob, &look);
	assert_true(raw_client_hear(&bob, &answer));
	assert_int_equal(answer.status, RBX_REASON_NOT_OWNER);
	raw_client_send(&bob, &take);
	assert_true(raw_client_hear(&bob, &answer));
	assert_int_equal(answer.status, RBX_REASON_NOT_OWNER);
	raw_client_send(&bob, &list);
	assert_true(raw_client_hear(&bob, &answer));
	assert_int_equal(answer.status, RBX_REASON_NO_VOLUME);
	raw_client_leave(&bob);
	raw_client_leave(&alice);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents_outlive_a_client),
		cmocka_unit_test(former_writer_is_shut_out_before_the_next_one_is_in),
		cmocka_unit_test(older_epochs_are_refused),
		cmocka_unit_test(keys_are_of_no_use_to_others),
		cmocka_unit_test(volume_that_was_never_complete_is_forgotten),
		cmocka_unit_test(removed_volume_gives_its_memory_back),
		cmocka_unit_test(volume_ends_when_its_time_is_over),
		cmocka_unit_test(volumes_are_listed),
		cmocka_unit_test(all_labels_are_told),
		cmocka_unit_test(resume_keeps_what_was_there_before),
		cmocka_unit_test(silent_writer_loses_its_session_and_not_the_volume),
		cmocka_unit_test(what_needs_a_volume_is_refused_without_one),
		cmocka_unit_test(session_is_for_one_volume_and_nothing_else),
		cmocka_unit_test(volume_of_another_owner_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
