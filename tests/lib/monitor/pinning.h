/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pinning.h - pins pages as a NIC does, and reads what they hold: fixed buffers of io_uring.
 *
 * The kernel pins them for long and for writing, with the same call as for a NIC. They are
 * read as pages, whatever has been mapped at their address since.
 */
#ifndef TESTS_PINNING_H
#define TESTS_PINNING_H

#include <stddef.h>
#include <stdint.h>

#include <linux/io_uring.h>

struct pinning {
	int ring_fd;
	int memory_fd; /* what was read */
	uint8_t *ring;
	struct io_uring_sqe *sqes;
	struct io_uring_params params;
};

/* slots: how many buffers there may be. */
void pinning_open(struct pinning *pinning, unsigned int slots);
void pinning_close(struct pinning *pinning);

/* 0 or -errno. Any thread. */
int pinning_pin(struct pinning *pinning, unsigned int slot, void *addr, size_t bytes);
void pinning_unpin(struct pinning *pinning, unsigned int slot);

/* Reads pinned bytes. addr: as when they were pinned. One thread at a time. */
void pinning_read(struct pinning *pinning, unsigned int slot, const void *addr, void *to,
		  size_t bytes);

#endif
