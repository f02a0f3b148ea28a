/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window.c - windows: parts of regions for the peer of one qp.
 *
 * A window is a key of the table that names its qp. The key is valid at once. But the window
 * is opened as on a device, in order: by a WRITE of no bytes (send_queue.c).
 */
#include "window.h"

#include <errno.h>
#include <stdlib.h>

#include "queue_pair.h"

struct soft_window {
	struct rbx_device_window window;
	struct rbx_mr *mr;
};

int soft_create_window(struct rbx_qp *qp,
		       const struct rbx_device_window_init *init,
		       struct rbx_device_window **out, char *error)
{
	struct soft_window *window = calloc(1, sizeof(*window));
	int err;

	if (!window) {
		soft_explain(error, "cannot make a window: no memory");
		return -ENOMEM;
	}
	err = soft_register_window(soft_qp_of(qp), init, &window->mr, error);
	if (err) {
		free(window);
		return err;
	}
	window->window.qp = qp;
	window->window.rkey = window->mr->rkey;
	*out = &window->window;
	return 0;
}

void soft_destroy_window(struct rbx_device_window *base)
{
	struct soft_window *window = (struct soft_window *)base;

	soft_deregister_memory(base->qp->device, &window->mr, 1);
	free(window);
}
