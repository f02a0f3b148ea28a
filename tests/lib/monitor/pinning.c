/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pinning.c - see pinning.h. */
#include "tests/lib/monitor/pinning.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/port.h"

#define RING_BYTES 4096u

void pinning_open(struct pinning *pinning, unsigned int slots)
{
	struct io_uring_rsrc_register none = { .nr = slots, .flags = IORING_RSRC_REGISTER_SPARSE };

	memset(pinning, 0, sizeof(*pinning));
	pinning->ring_fd = (int)syscall(SYS_io_uring_setup, 1, &pinning->params);
	if (pinning->ring_fd < 0)
		fail_msg("io_uring_setup(): %s; these tests need it", strerror(errno));
	assert_true(pinning->params.features & IORING_FEAT_SINGLE_MMAP);
	pinning->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     pinning->ring_fd, IORING_OFF_SQ_RING);
	pinning->sqes = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     pinning->ring_fd, IORING_OFF_SQES);
	assert_true(pinning->ring != MAP_FAILED && pinning->sqes != MAP_FAILED);
	assert_int_equal(syscall(SYS_io_uring_register, pinning->ring_fd,
				 IORING_REGISTER_BUFFERS2, &none, sizeof(none)),
			 0);
	pinning->memory_fd = memfd_create("read by the device", MFD_CLOEXEC);
	assert_true(pinning->memory_fd >= 0);
}

void pinning_close(struct pinning *pinning)
{
	munmap(pinning->ring, RING_BYTES);
	munmap(pinning->sqes, RING_BYTES);
	close(pinning->ring_fd);
	close(pinning->memory_fd);
}

int pinning_pin(struct pinning *pinning, unsigned int slot, void *addr, size_t bytes)
{
	struct iovec part = { addr, bytes };
	uint64_t tag = 0;
	struct io_uring_rsrc_update2 update = {
		.offset = slot,
		.data = (uintptr_t)&part,
		.tags = (uintptr_t)&tag,
		.nr = 1,
	};
	long done = syscall(SYS_io_uring_register, pinning->ring_fd,
			    IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof(update));

	return done == 1 ? 0 : -errno;
}

void pinning_unpin(struct pinning *pinning, unsigned int slot)
{
	assert_int_equal(pinning_pin(pinning, slot, NULL, 0), 0);
}

static uint32_t *ring_word(struct pinning *pinning, uint32_t offset)
{
	return (uint32_t *)(pinning->ring + offset);
}

void pinning_read(struct pinning *pinning, unsigned int slot, const void *addr, void *to,
		  size_t bytes)
{
	uint32_t *tail = ring_word(pinning, pinning->params.sq_off.tail);
	uint32_t *head = ring_word(pinning, pinning->params.cq_off.head);
	struct io_uring_cqe *cqes =
		(struct io_uring_cqe *)(pinning->ring + pinning->params.cq_off.cqes);
	uint32_t mask = *ring_word(pinning, pinning->params.cq_off.ring_mask);

	pinning->sqes[0] = (struct io_uring_sqe){
		.opcode = IORING_OP_WRITE_FIXED,
		.fd = pinning->memory_fd,
		.addr = (uintptr_t)addr,
		.len = (uint32_t)bytes,
		.buf_index = (uint16_t)slot,
	};
	*ring_word(pinning, pinning->params.sq_off.array) = 0;
	RBX_STORE_RELEASE(tail, *tail + 1);
	assert_int_equal(syscall(SYS_io_uring_enter, pinning->ring_fd, 1, 1,
				 IORING_ENTER_GETEVENTS, NULL, 0),
			 1);
	assert_int_equal(cqes[*head & mask].res, bytes);
	RBX_STORE_RELEASE(head, *head + 1);
	assert_int_equal(pread(pinning->memory_fd, to, bytes, 0), bytes);
}
