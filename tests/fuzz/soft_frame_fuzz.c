/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_frame_fuzz.c - feeds bytes to the soft device as a peer would.
 *
 * The bytes go into a socket pair whose other end is a real qp with memory
 * registered, requests outstanding and receives posted; so they run through
 * the whole receive path: look-ahead, decoding, keys, queues, answers. The
 * first byte chooses what is outstanding and whether the peer is on this host.
 * The sequence and key of each frame are set right in half of the inputs, for
 * a fuzzer cannot guess them and would never get behind their checks.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/soft/device.h"
#include "fabric/soft/queue_pair.h"

#define MEMORY_BYTES 65536

static struct rbx_device *device;
static struct rbx_cq *cq;
static struct rbx_srq *srq;
static struct rbx_mr *mr;
static uint8_t memory[MEMORY_BYTES], local[MEMORY_BYTES];

/* Each input has its own key, for a peer can end it. */
static void memory_register(void)
{
	struct rbx_mr_init init = {
		.addr = memory,
		.length_bytes = sizeof(memory),
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE |
			  RBX_REMOTE_ATOMIC | RBX_REMOTE_INVALIDATE,
		.memory_fd = -1,
	};

	if (rbx_fabric_soft.register_memory(device, &init, 1, &mr, NULL))
		abort();
}

static void setup(void)
{
	struct rbx_device_options options = { .same_host_mapping = true };
	struct rbx_srq_init init = { .depth_count = 4, .max_sge = 3 };

	if (rbx_fabric_soft.open(&options, &device, NULL) ||
	    rbx_fabric_soft.create_cq(device, 64, &cq, NULL))
		abort();
	init.cq = cq;
	if (rbx_fabric_soft.create_srq(device, &init, &srq, NULL))
		abort();
}

/* Of what two of the choices leave free. */
static bool shares_receives(uint8_t choice)
{
	return choice & 16 && (choice & 3) < 3;
}

static struct soft_qp *qp_open(int fd, bool mapped, bool shared)
{
	struct rbx_qp_init init = {
		.send_cq = cq,
		.recv_cq = cq,
		.send_depth_count = 8,
		.recv_depth_count = 4,
		.max_sge = 2,
		.recv_max_sge = 3,
		.srq = shared ? srq : NULL,
	};
	struct soft_peer peer = {
		.fd = fd,
		.send_depth_count = 4,
		.name = "fuzz",
		.mapped = mapped,
	};
	struct soft_qp *qp;

	if (soft_qp_create(soft_device_of(device), &init, &peer, &qp, NULL))
		abort();
	return qp;
}

static void work_post(struct soft_qp *qp, uint8_t choice)
{
	struct rbx_sge sges[2] = {
		{ (uintptr_t)local, 100, SOFT_ANY_LKEY },
		{ (uintptr_t)local + 200, 50, SOFT_ANY_LKEY },
	};
	struct rbx_wr wr = {
		.sges = sges,
		.sge_count = 2,
		.flags = RBX_WR_SIGNALED,
		.rkey = mr->rkey,
		.remote_addr = (uintptr_t)memory,
	}, *bad;
	const struct rbx_sge buffers[3] = {
		{ (uintptr_t)local + 1000, 700, SOFT_ANY_LKEY },
		{ (uintptr_t)local + 2000, 299, SOFT_ANY_LKEY },
		{ (uintptr_t)local + 3000, 1, SOFT_ANY_LKEY },
	};
	struct rbx_recv_wr receive = {
		.sges = buffers,
		.sge_count = 3,
	}, *bad_receive;
	int i;

	for (i = 0; i < (choice & 3); i++) {
		wr.opcode = choice >> i & 4 ? RBX_OP_READ : RBX_OP_WRITE;
		if (choice & 32 && i == 1) {
			wr.opcode = RBX_OP_FETCH_ADD;
			wr.sge_count = 1;
			sges[0].length_bytes = 8;
		}
		rbx_fabric_soft.post_send(&qp->qp, &wr, &bad);
		if (qp->srq)
			rbx_fabric_soft.post_srq_recv(srq, &receive,
						      &bad_receive);
		else
			rbx_fabric_soft.post_recv(&qp->qp, &receive,
						  &bad_receive);
	}
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == SOFT_COMPARE_SWAP || opcode == SOFT_FETCH_ADD;
}

/* Right but for what the fuzzer is to choose: lengths, flags, where to. */
static void request_mend(struct soft_wire_frame *wire)
{
	bool is_send = wire->opcode == SOFT_SEND;

	wire->status = 0;
	wire->credit = 0;
	wire->flags &= SOFT_ACK_WANTED | SOFT_IMMEDIATE | SOFT_INVALIDATE;
	if (wire->flags & SOFT_IMMEDIATE || !is_send)
		wire->flags &= (uint8_t)~SOFT_INVALIDATE;
	if (wire->opcode != SOFT_WRITE && !is_send)
		wire->flags &= SOFT_ACK_WANTED;
	if (!(wire->flags & SOFT_IMMEDIATE))
		wire->immediate = 0;
	wire->rkey = is_send && !(wire->flags & SOFT_INVALIDATE) ? 0 : mr->rkey;
	wire->remote_addr = is_send ? 0 : (uintptr_t)memory +
					  wire->remote_addr % MEMORY_BYTES;
	if (is_atomic(wire->opcode)) {
		wire->length_bytes = 0;
		wire->remote_addr &= ~(uint64_t)(wire->immediate & 1 ? 0 : 7);
	}
}

/* Walks over the frames and mends what cannot be guessed. */
static void frames_mend(uint8_t *bytes, size_t size)
{
	uint32_t sequence = SOFT_FIRST_SEQUENCE;
	struct soft_wire_frame wire;
	size_t at = 0;

	while (at + sizeof(wire) <= size) {
		memcpy(&wire, bytes + at, sizeof(wire));
		wire.opcode = wire.opcode % (SOFT_OPCODE_LAST + 1);
		wire.reserved = 0;
		wire.length_bytes %= 3000;
		wire.sequence = SOFT_FIRST_SEQUENCE + wire.sequence % 4;
		if (wire.opcode <= SOFT_SEND || is_atomic(wire.opcode)) {
			wire.sequence = sequence++;
			request_mend(&wire);
		} else {
			wire.immediate = 0;
		}
		if (wire.opcode == SOFT_ASK_CREDIT)
			wire = (struct soft_wire_frame){
				.opcode = SOFT_ASK_CREDIT,
				.credit = wire.credit % 8,
			};
		if (wire.opcode == SOFT_RESPONSE || wire.opcode == SOFT_ACK ||
		    wire.opcode == SOFT_ERROR) {
			wire.flags = 0;
			wire.rkey = 0;
			wire.remote_addr = 0;
		}
		memcpy(bytes + at, &wire, sizeof(wire));
		at += sizeof(wire);
		if (is_atomic(wire.opcode))
			at += SOFT_ATOMIC_BYTES;
		else if (wire.opcode != SOFT_READ &&
			 wire.opcode <= SOFT_RESPONSE)
			at += wire.length_bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[16384], answer[4096];
	struct rbx_wc wcs[16];
	struct soft_qp *qp;
	int ends[2], i;

	if (!device)
		setup();
	if (!size || size > sizeof(bytes))
		return 0;
	memory_register();
	memcpy(bytes, data, size);
	if (data[0] & 0x80)
		frames_mend(bytes + 1, size - 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		abort();
	qp = qp_open(ends[0], data[0] & 0x40, shares_receives(data[0]));
	work_post(qp, data[0]);
	/* In two parts, so that frames are cut anywhere. */
	for (i = 0; i < 2; i++) {
		size_t half = (size - 1) / 2;
		size_t part = i ? size - 1 - half : half;

		if (send(ends[1], bytes + 1 + (i ? half : 0), part,
			 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		rbx_fabric_soft.poll(cq, wcs, 16);
		while (recv(ends[1], answer, sizeof(answer), MSG_DONTWAIT) > 0)
			rbx_fabric_soft.poll(cq, wcs, 16);
	}
	rbx_fabric_soft.destroy_qp(&qp->qp);
	close(ends[1]);
	rbx_fabric_soft.deregister_memory(device, &mr, 1);
	return 0;
}
