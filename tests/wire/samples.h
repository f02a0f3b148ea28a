/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* samples.h - a message of each type, with a different number in each field. */
#ifndef RBX_TESTS_WIRE_SAMPLES_H
#define RBX_TESTS_WIRE_SAMPLES_H

#include <string.h>

#include "wire/message.h"
#include "wire/reason.h"

static inline struct rbx_wire_record sample_record(void)
{
	struct rbx_wire_record record = {
		.name = "db-1",
		.owner = "alice",
		.volume_id = 50, .size_bytes = 51, .slab_bytes = 52, .keep_s = 53,
		.epoch = 54, .version = 55, .replicas = 56, .flags = RBX_WIRE_CHECKSUMS,
		.members_count = 3,
		.incarnations = { 57, 58, 59 },
		.member_flags = { 0, RBX_WIRE_MEMBER_OUT,
				  RBX_WIRE_MEMBER_OUT | RBX_WIRE_MEMBER_WAS_IN },
	};

	return record;
}

static inline struct rbx_wire_message sample(uint16_t type)
{
	struct rbx_wire_message m = { .type = type, .request_id = 0x1122334455 };
	uint32_t i;

	switch (type) {
	case RBX_WIRE_HELLO:
		m.hello.flags = RBX_WIRE_HAS_SECRET | RBX_WIRE_RESUME;
		memset(m.hello.nonce, 0x41, sizeof(m.hello.nonce));
		m.hello.session_id = 0x0102030405060708;
		m.hello.incarnation = 0x1112131415161718;
		m.hello.last_epoch = 0x3132333435363738;
		memcpy(m.hello.credential, "A.name_of-31-characters.0123456", 31);
		break;
	case RBX_WIRE_CHALLENGE:
		memset(m.challenge.nonce, 0x42, sizeof(m.challenge.nonce));
		m.challenge.incarnation = 0x2122232425262728;
		break;
	case RBX_WIRE_AUTH:
		memset(m.auth.proof, 0x43, sizeof(m.auth.proof));
		break;
	case RBX_WIRE_WELCOME:
		m.welcome = (struct rbx_wire_welcome){
			.session_id = 1, .incarnation = 2, .slab_bytes = 3,
			.memory_bytes = 4, .free_bytes = 5, .quota_bytes = 6,
			.lease_ms = 7, .requests_max = 8, .queue_pairs_max = 9,
			.draining = 1,
			.labels = "rack=7,zone=b",
		};
		memset(m.welcome.proof, 0x44, sizeof(m.welcome.proof));
		break;
	case RBX_WIRE_ERROR:
		m.status = RBX_REASON_QUOTA;
		break;
	case RBX_WIRE_SLAB_LOAN:
		m.epoch = 10;
		m.loan = (struct rbx_wire_loan){ 11, 12, 13, 14, 15 };
		break;
	case RBX_WIRE_SLAB_QUERY:
	case RBX_WIRE_SLAB_UNMAP:
	case RBX_WIRE_SLAB_UNMAPPED:
		m.epoch = 16;
		m.slab_id = 17;
		break;
	case RBX_WIRE_SLAB_EVICT:
		m.epoch = 18;
		m.evict = (struct rbx_wire_evict){ 19, 20 };
		break;
	case RBX_WIRE_HEARTBEAT_REPLY:
		m.heartbeat_reply =
			(struct rbx_wire_heartbeat_reply){ 21, 22, 1 };
		break;
	case RBX_WIRE_STATS_REPLY:
		m.counters.count = RBX_WIRE_COUNTERS_MAX - 1;
		for (i = 0; i < m.counters.count; i++)
			m.counters.values[i] = 100 + i;
		break;
	case RBX_WIRE_USER_MESSAGE:
		m.user_message.sequence = 23;
		m.user_message.length_bytes = 9;
		memcpy(m.user_message.bytes, "a message", 9);
		break;
	case RBX_WIRE_USER_MESSAGE_TAKEN:
		m.user_message_taken =
			(struct rbx_wire_user_message_taken){ 24, 1 };
		break;
	case RBX_WIRE_SLAB_MAP:
		m.map = (struct rbx_wire_map){ 25, 1, 1 };
		break;
	case RBX_WIRE_SLAB_COMPLETE:
	case RBX_WIRE_SLAB_INCOMPLETE:
		m.epoch = 26;
		m.slab_id = 27;
		break;
	case RBX_WIRE_VOLUME_OPEN:
		m.volume_open = (struct rbx_wire_volume_open){
			.name = "db-1", .holder = "host:42", .writer_epoch = 28,
			.volume_id = 29, .mode = RBX_WIRE_OPEN_CREATE,
		};
		break;
	case RBX_WIRE_VOLUME_LIST:
	case RBX_WIRE_LABELS:
		m.cursor = 30;
		break;
	case RBX_WIRE_VOLUME:
		m.volume = (struct rbx_wire_volume){
			.record = sample_record(), .holder = "host:42",
			.promised_epoch = 31, .last_epoch = 32, .next = 33, .is_open = 1,
		};
		break;
	case RBX_WIRE_VOLUME_READ:
		m.volume_id = 46;
		break;
	case RBX_WIRE_VOLUME_READING:
		m.reading = (struct rbx_wire_volume_reading){ sample_record(), 47, 48 };
		break;
	case RBX_WIRE_VOLUME_ACCEPT:
		m.record = sample_record();
		break;
	case RBX_WIRE_VOLUME_RESERVE:
		strcpy(m.name, "db-2");
		break;
	case RBX_WIRE_VOLUME_DONE:
		m.writer_epoch = 34;
		break;
	case RBX_WIRE_LABELS_REPLY:
		m.labels.next = 35;
		m.labels.count = RBX_WIRE_LABELS_MAX - 1;
		for (i = 0; i < m.labels.count; i++)
			m.labels.labels[i] = (struct rbx_wire_label){
				.label = 36 + i, .slab_id = 37, .epoch = 38,
				.remote_addr = 39, .rkey = 40, .is_complete = i % 2,
				.intent = 41, .behind = 45,
			};
		break;
	case RBX_WIRE_INTENTS:
		m.intents.count = RBX_WIRE_INTENTS_MAX - 1;
		for (i = 0; i < m.intents.count; i++)
			m.intents.intents[i] = (struct rbx_wire_intent){ 42 + i, 43, i, 44 };
		break;
	}
	return m;
}


#endif
