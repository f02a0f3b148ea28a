/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window.c - windows: parts of regions for the peer of one queue pair.
 *
 * A memory window of type 2 is bound by a work request of its queue pair, and its key is
 * valid only there. The peer may end the key, whether or not that was allowed. A device
 * without such windows registers the part once more, and the key is valid in the domain.
 * Either way closing the window takes the key back in the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

struct verbs_window {
	struct rbx_device_window window;
	struct ibv_mw *ibv; /* with what it is bound to; or it is registered: */
	struct ibv_mw_bind_info bind;
	struct ibv_mr *mr;
};

static int init_check(const struct rbx_verbs_qp *qp,
		      const struct rbx_device_window_init *init, char *error)
{
	const struct rbx_verbs_device *device = qp->conn->device;
	const char *start = init->mr->addr;
	const char *at = init->addr;

	if (init->rights & RBX_WINDOWS || at < start || !init->length_bytes ||
	    init->length_bytes > init->mr->length_bytes ||
	    (size_t)(at - start) > init->mr->length_bytes - init->length_bytes)
		return rbx_verbs_explain(error, -EINVAL,
			"a window has to lie in its region");
	if (!rbx_verbs_mr_allows_windows(init->mr) ||
	    rbx_verbs_mr(init->mr)->pd != qp->ibv->pd)
		return rbx_verbs_explain(error, -EINVAL,
			"the region is not for windows, or not of the domain of "
			"the connection");
	if (init->rights & RBX_REMOTE_INVALIDATE && !device->has_windows)
		return rbx_verbs_explain(error, -EOPNOTSUPP,
			"%s has no memory windows, so that a peer cannot end "
			"a key", device->verbs->device->name);
	return 0;
}

static int window_allocate(struct verbs_window *window,
			   const struct rbx_device_window_init *init, char *error)
{
	int err;

	window->ibv = ibv_alloc_mw(rbx_verbs_mr(init->mr)->pd, IBV_MW_TYPE_2);
	if (!window->ibv) {
		err = errno ? -errno : -ENOMEM;
		return rbx_verbs_explain(error, err,
			"the device cannot create a memory window: %s", strerror(-err));
	}
	window->bind = (struct ibv_mw_bind_info){
		.mr = rbx_verbs_mr(init->mr),
		.addr = (uintptr_t)init->addr,
		.length = init->length_bytes,
		.mw_access_flags = (unsigned int)rbx_verbs_access_flags(
					   init->rights) &
				   ~(unsigned int)IBV_ACCESS_LOCAL_WRITE,
	};
	window->window.rkey = ibv_inc_rkey(window->ibv->rkey);
	return 0;
}

void rbx_verbs_window_translate(const struct rbx_device_window *rbx_window,
				struct ibv_send_wr *wr)
{
	const struct verbs_window *window =
		(const struct verbs_window *)rbx_window;

	wr->bind_mw.mw = window->ibv;
	wr->bind_mw.rkey = window->window.rkey;
	wr->bind_mw.bind_info = window->bind;
}

static int window_register(struct verbs_window *window,
			   const struct rbx_device_window_init *init, char *error)
{
	int err;

	window->mr = ibv_reg_mr(rbx_verbs_mr(init->mr)->pd, init->addr,
				init->length_bytes,
				rbx_verbs_access_flags(init->rights));
	if (!window->mr) {
		err = errno ? -errno : -EIO;
		return rbx_verbs_explain(error, err,
			"cannot register a part of a region: %s", strerror(-err));
	}
	window->window.rkey = window->mr->rkey;
	window->window.is_open = true;
	return 0;
}

int rbx_verbs_create_window(struct rbx_qp *rbx_qp,
			    const struct rbx_device_window_init *init,
			    struct rbx_device_window **out, char *error)
{
	struct rbx_verbs_device *device = rbx_verbs_device(rbx_qp->device);
	struct verbs_window *window;
	int err = init_check(rbx_verbs_qp(rbx_qp), init, error);

	if (err)
		return err;
	window = calloc(1, sizeof(*window));
	if (!window)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	window->window.qp = rbx_qp;
	err = device->has_windows ?
		      window_allocate(window, init, error) :
		      window_register(window, init, error);
	if (err) {
		free(window);
		return err;
	}
	*out = &window->window;
	return 0;
}

void rbx_verbs_destroy_window(struct rbx_device_window *rbx_window)
{
	struct verbs_window *window = (struct verbs_window *)rbx_window;

	if (window->ibv)
		ibv_dealloc_mw(window->ibv);
	else
		ibv_dereg_mr(window->mr);
	free(window);
}
