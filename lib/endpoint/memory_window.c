/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_window.c - memory windows: a part of a region for the other side of one
 * endpoint.
 *
 * A work request opens the window. Its completion is silent. Like an operation it has a
 * slot in the endpoint's ring, or goes through the channel if the endpoint is paced. The
 * window cannot be closed until that completion was polled, as the device may still have
 * to open it.
 */
#include <stdlib.h>

#include "lib/endpoint/paced.h"

struct rbx_memory_window {
	struct rbx_endpoint *endpoint;
	struct rbx_device_window *of_device;
	void *addr;
	size_t length_bytes;
	uint32_t number; /* of its work request, if the endpoint is not paced */
	bool is_opening; /* atomic; used if the endpoint is paced */
};

/* ---- Opening ----------------------------------------------------------------------*/

static int post_locked(struct rbx_memory_window *window, struct rbx_wr *wr,
		       void *user)
{
	struct rbx_endpoint *endpoint = window->endpoint;
	int err = rbx_endpoint_room(&endpoint->sends, 1);

	if (err)
		return err;
	window->number = rbx_endpoint_slot_take(&endpoint->sends, user, true);
	wr->wr_id = window->number;
	return rbx_endpoint_chain_post(endpoint, wr, 1);
}

static int open_in_order(struct rbx_memory_window *window, void *user)
{
	struct rbx_endpoint *endpoint = window->endpoint;
	struct rbx_wr wr = {
		.opcode = RBX_OP_OPEN_WINDOW,
		.flags = RBX_WR_SIGNALED,
		.window = window->of_device,
	};
	int err;

	if (endpoint->paced) {
		window->is_opening = true;
		return rbx_paced_open_window(endpoint, &wr, &window->is_opening,
					     user);
	}
	pthread_mutex_lock(&endpoint->post_lock);
	err = post_locked(window, &wr, user);
	pthread_mutex_unlock(&endpoint->post_lock);
	return err;
}

static int device_window_open(struct rbx_memory_window *window,
			      const struct rbx_device_window_init *init, void *user)
{
	struct rbx_qp *qp = window->endpoint->qp;
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err = qp->device->ops->create_window(qp, init, &window->of_device,
						 error);

	if (err)
		return rbx_error(err, "%s", error);
	if (!window->of_device->is_open)
		err = open_in_order(window, user);
	if (err)
		qp->device->ops->destroy_window(window->of_device);
	return err;
}

int rbx_memory_window_open(struct rbx_endpoint *endpoint,
			   const struct rbx_region *region, void *addr,
			   size_t length, uint32_t rights, void *user,
			   struct rbx_memory_window **out)
{
	struct rbx_device_window_init init = {
		.addr = addr,
		.length_bytes = length,
	};
	struct rbx_memory_window *window;
	int err;

	if (!endpoint || !region || !length || !out)
		return rbx_error(-EINVAL, "rbx_memory_window_open: an endpoint, a region and a part of it must be given");
	err = rbx_guard_use(endpoint->queue->ctx, "rbx_memory_window_open");
	if (!err)
		err = rbx_region_rights(&endpoint->qp->device->caps, rights, true,
					&init.rights);
	if (err)
		return err;
	window = calloc(1, sizeof(*window));
	if (!window)
		return rbx_error(-ENOMEM, "cannot allocate a memory window");
	window->endpoint = endpoint;
	window->addr = addr;
	window->length_bytes = length;
	init.mr = rbx_region_mr(region);
	err = device_window_open(window, &init, user);
	if (err) {
		free(window);
		return err;
	}
	RBX_FETCH_ADD(&endpoint->windows_count, 1);
	*out = window;
	return 0;
}

void rbx_memory_window_key(const struct rbx_memory_window *window,
			   struct rbx_region_key *key)
{
	*key = (struct rbx_region_key){
		.address = (uintptr_t)window->addr,
		.length_bytes = window->length_bytes,
		.key = window->of_device->rkey,
	};
}

/* ---- Closing ----------------------------------------------------------------------*/

/* After 2^32 operations the number may belong to another one. */
static bool is_outstanding(const struct rbx_memory_window *window)
{
	struct rbx_endpoint *endpoint = window->endpoint;
	const struct rbx_endpoint_ring *sends = &endpoint->sends;
	uint32_t completed_count;
	bool is_outstanding;

	if (window->of_device->is_open)
		return false;
	if (endpoint->paced)
		return RBX_LOAD_ACQUIRE(&window->is_opening);
	pthread_mutex_lock(&endpoint->post_lock);
	completed_count = RBX_LOAD_ACQUIRE(&sends->completed_count);
	is_outstanding = window->number - completed_count <
			 sends->posted_count - completed_count;
	pthread_mutex_unlock(&endpoint->post_lock);
	return is_outstanding;
}

int rbx_memory_window_close(struct rbx_memory_window *window)
{
	struct rbx_endpoint *endpoint;
	int err;

	if (!window)
		return 0;
	endpoint = window->endpoint;
	err = rbx_guard_use(endpoint->queue->ctx, "rbx_memory_window_close");
	if (err)
		return err;
	if (is_outstanding(window))
		return rbx_error(-EBUSY, "rbx_memory_window_close: its opening has not completed: rbx_queue_poll() first");
	endpoint->qp->device->ops->destroy_window(window->of_device);
	RBX_FETCH_ADD(&endpoint->windows_count, (uint32_t)-1);
	free(window);
	return 0;
}
