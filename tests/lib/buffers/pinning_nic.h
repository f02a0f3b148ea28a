/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pinning_nic.h - a device that registers memory as a NIC does, by the fixed buffers of io_uring
 * (pinning.h): what a registration reads is what was in the pages when it was made, whatever is
 * mapped there since. It has few registrations, counts them, and can refuse one.
 */
#ifndef TESTS_PINNING_NIC_H
#define TESTS_PINNING_NIC_H

#include <pthread.h>
#include <stdbool.h>

#include "fabric/fabric.h"
#include "tests/lib/monitor/pinning.h"

#define PINNING_NIC_SLOTS 64u

struct pinning_nic {
	struct rbx_device device;
	struct pinning pinning;
	pthread_mutex_t lock; /* guards all below, and what is read */
	bool is_taken[PINNING_NIC_SLOTS];
	uint32_t alive_count, alive_max, registered_count, refused_count;
	uint64_t pages_alive, pages_alive_max;
	/* Called once, when a registration has begun. false: it is refused, with -EIO. */
	bool (*before)(void);
};

void pinning_nic_open(struct pinning_nic *nic);
/* Nothing may be registered any more. */
void pinning_nic_close(struct pinning_nic *nic);

uint32_t pinning_nic_alive(struct pinning_nic *nic);

/* What the device reads at an address of a registration. */
uint8_t pinning_nic_read(struct pinning_nic *nic, const struct rbx_mr *mr, const uint8_t *addr);

#endif
