/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * requests.h - the requests of one job: makes requests of fio's units.
 */
#ifndef RDMABOX_FIO_REQUESTS_H
#define RDMABOX_FIO_REQUESTS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <rdmabox/rdmabox.h>

struct io_u;
struct requests;
struct thread_data;

/* The volume that they go to. */
struct requests_target {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	uint32_t fragments_max; /* of one submit */
	uint32_t fragment_bytes;
	uint8_t read_flags; /* enum rbx_request_flags */
};

/** requests_create() - for `depth` outstanding units. NULL without memory. */
struct requests *requests_create(const struct requests_target *target,
				 unsigned int depth);

/** requests_destroy() - none is outstanding. NULL: nothing. */
void requests_destroy(struct requests *requests);

/**
 * requests_register() - the memory that the units' buffers are in.
 *
 * Returns 0 or -errno as rbx_region_register().
 */
int requests_register(struct requests *requests, void *addr, size_t length);

/** requests_release() - ends that, if it is not ended. */
void requests_release(struct requests *requests);

/** requests_attach() - gives a unit its request, for good. */
void requests_attach(struct requests *requests, struct io_u *io_u);

/** requests_queue() - puts a read or write off until the next submit. */
void requests_queue(struct requests *requests, struct io_u *io_u);

/** requests_queued() - how many are put off. */
unsigned int requests_queued(const struct requests *requests);

/**
 * requests_submit() - hands over what is put off, as one batch.
 * @told: called for each unit once the library has it.
 *
 * One that the library refuses completes with an error. May wait for room.
 */
void requests_submit(struct requests *requests, struct thread_data *td,
		     void (*told)(struct thread_data *td, struct io_u *io_u));

/** requests_fence() - waits until all that was submitted has completed. */
void requests_fence(struct requests *requests);

/**
 * requests_reap() - takes completed units.
 * @timeout: NULL waits until there are `min`.
 *
 * Returns how many; requests_event() has them.
 */
unsigned int requests_reap(struct requests *requests, unsigned int min,
			   unsigned int max, const struct timespec *timeout);
struct io_u *requests_event(const struct requests *requests, unsigned int at);

#endif
