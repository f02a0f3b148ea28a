/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pinning_nic.c - see pinning_nic.h. */
#include "tests/lib/buffers/pinning_nic.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE_BYTES 4096u

struct registration {
	struct rbx_mr mr;
	unsigned int slot;
};

static int slot_take(struct pinning_nic *nic)
{
	int slot = -ENOMEM;

	pthread_mutex_lock(&nic->lock);
	if (nic->alive_count < nic->alive_max)
		for (slot = 0; nic->is_taken[slot]; slot++)
			assert_true(slot + 1 < (int)PINNING_NIC_SLOTS);
	if (slot >= 0) {
		nic->is_taken[slot] = true;
		nic->alive_count++;
	} else {
		nic->refused_count++;
	}
	pthread_mutex_unlock(&nic->lock);
	return slot;
}

static void slot_give(struct pinning_nic *nic, unsigned int slot, uint64_t pages)
{
	pthread_mutex_lock(&nic->lock);
	nic->is_taken[slot] = false;
	nic->alive_count--;
	nic->pages_alive -= pages;
	pthread_mutex_unlock(&nic->lock);
}

static bool goes_on(struct pinning_nic *nic)
{
	bool (*before)(void);

	pthread_mutex_lock(&nic->lock);
	before = nic->before;
	nic->before = NULL;
	pthread_mutex_unlock(&nic->lock);
	return !before || before();
}

static int nic_register(struct rbx_device *device, const struct rbx_mr_init *init, size_t count,
			struct rbx_mr **mr, char *error)
{
	struct pinning_nic *nic = RBX_CONTAINER_OF(device, struct pinning_nic, device);
	struct registration *registration;
	int slot = slot_take(nic), err;

	(void)error;
	assert_int_equal(count, 1);
	if (slot < 0)
		return slot;
	err = pinning_pin(&nic->pinning, (unsigned int)slot, init->addr, init->length_bytes);
	if (!err && !goes_on(nic)) {
		pinning_unpin(&nic->pinning, (unsigned int)slot);
		err = -EIO;
	}
	if (err) {
		slot_give(nic, (unsigned int)slot, 0);
		return err;
	}
	registration = calloc(1, sizeof(*registration));
	assert_non_null(registration);
	registration->mr = (struct rbx_mr){
		.device = device, .addr = init->addr, .length_bytes = init->length_bytes };
	registration->slot = (unsigned int)slot;
	pthread_mutex_lock(&nic->lock);
	nic->registered_count++;
	nic->pages_alive += init->length_bytes / PAGE_BYTES;
	nic->pages_alive_max = RBX_MAX(nic->pages_alive_max, nic->pages_alive);
	pthread_mutex_unlock(&nic->lock);
	*mr = &registration->mr;
	return 0;
}

static void nic_deregister(struct rbx_device *device, struct rbx_mr **mrs, size_t count)
{
	struct pinning_nic *nic = RBX_CONTAINER_OF(device, struct pinning_nic, device);

	for (size_t i = 0; i < count; i++) {
		struct registration *registration =
			RBX_CONTAINER_OF(mrs[i], struct registration, mr);

		pinning_unpin(&nic->pinning, registration->slot);
		slot_give(nic, registration->slot, registration->mr.length_bytes / PAGE_BYTES);
		free(registration);
	}
}

static const struct rbx_fabric_ops nic_ops = {
	.name = "nic",
	.register_memory = nic_register,
	.deregister_memory = nic_deregister,
};

void pinning_nic_open(struct pinning_nic *nic)
{
	memset(nic, 0, sizeof(*nic));
	nic->device.ops = &nic_ops;
	nic->alive_max = PINNING_NIC_SLOTS;
	pthread_mutex_init(&nic->lock, NULL);
	pinning_open(&nic->pinning, PINNING_NIC_SLOTS);
}

void pinning_nic_close(struct pinning_nic *nic)
{
	assert_int_equal(nic->alive_count, 0);
	pinning_close(&nic->pinning);
	pthread_mutex_destroy(&nic->lock);
}

uint32_t pinning_nic_alive(struct pinning_nic *nic)
{
	uint32_t count;

	pthread_mutex_lock(&nic->lock);
	count = nic->alive_count;
	pthread_mutex_unlock(&nic->lock);
	return count;
}

uint8_t pinning_nic_read(struct pinning_nic *nic, const struct rbx_mr *mr, const uint8_t *addr)
{
	uint8_t byte;

	pthread_mutex_lock(&nic->lock);
	pinning_read(&nic->pinning, RBX_CONTAINER_OF(mr, struct registration, mr)->slot, addr,
		     &byte, 1);
	pthread_mutex_unlock(&nic->lock);
	return byte;
}
