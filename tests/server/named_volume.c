/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/server/named_volume.h"

#include <string.h>

uint64_t named_id(const char *name)
{
	uint64_t hash = 14695981039346656037ull; /* FNV-1a */

	if (!strcmp(name, "db"))
		return NAMED_ID;
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 1099511628211ull;
	return hash;
}

int named_open(struct rbx_session *session, enum rbx_wire_open_mode mode,
	       const char *name, uint64_t epoch, struct rbx_wire_volume *volume)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .mode = mode, .writer_epoch = epoch },
	};
	int err;

	strcpy(m.volume_open.name, name);
	if (mode != RBX_WIRE_OPEN_LOOK) {
		strcpy(m.volume_open.holder, "a test");
		m.volume_open.volume_id = named_id(name);
	}
	err = rbx_session_talk(session, &m);
	if (!err && volume)
		*volume = m.volume;
	return err;
}

struct rbx_wire_message named_accept_of(const struct rbx_wire_volume *volume, uint64_t epoch,
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

void named_fill(struct world *world, struct rbx_session *session, struct rbx_qp **qp,
		struct rbx_loan *loan)
{
	const struct rbx_wire_map map = { .label = 3, .is_complete = 1 };
	struct rbx_wire_volume volume;
	struct rbx_wire_message accept;

	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, &volume), 0);
	assert_int_equal(volume.record.epoch, 0);
	accept = named_accept_of(&volume, 1, 1);
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	assert_int_equal(accept.writer_epoch, 1);
	assert_int_equal(rbx_session_map_for(session, &map, loan), 0);
	*qp = world_qp(world, session);
	memset(world->memory, 0x5c, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(world, *qp, RBX_OP_WRITE, loan), 0);
}

struct rbx_session *named_make(struct world *world, struct rbx_qp **qp,
			       struct rbx_loan *loan)
{
	struct rbx_session *session = world_session(world);

	named_fill(world, session, qp, loan);
	return session;
}

struct rbx_wire_labels named_labels(struct rbx_session *session, uint64_t cursor)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_LABELS, .cursor = cursor };

	assert_int_equal(rbx_session_talk(session, &m), 0);
	return m.labels;
}

struct rbx_loan named_loan_of(const struct rbx_wire_label *label)
{
	return (struct rbx_loan){ label->slab_id, label->epoch, label->remote_addr, label->rkey };
}

void named_expect(struct world *world, struct rbx_qp *qp, const struct rbx_loan *loan)
{
	size_t i;

	memset(world->memory, 0, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(world, qp, RBX_OP_READ, loan), 0);
	for (i = 0; i < WORLD_SLAB_BYTES; i++)
		assert_int_equal(world->memory[i], 0x5c);
}

void named_two_begin(struct named_two *two)
{
	world_begin(&two->world);
	two->writer = named_make(&two->world, &two->qp, &two->loan);
	two->other = world_session(&two->world);
}

void named_two_end(struct named_two *two)
{
	two->world.choice.ops->destroy_qp(two->qp);
	rbx_session_close(two->other);
	rbx_session_close(two->writer);
	world_stop(&two->world);
}
