/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.c - asynchronous events of the device.
 *
 * The fabric keeps the events; here they only get their public names. Another thread may
 * close the object of an event meanwhile, so nothing is looked up in the object.
 */
#include <poll.h>

#include "lib/clock.h"
#include "lib/endpoint/endpoint.h"

static void translate(const struct rbx_device_event *of_device,
		      struct rbx_endpoint_event *event)
{
	static const enum rbx_endpoint_event_kind kinds[] = {
		[RBX_DEVICE_FAILED] = RBX_ENDPOINT_DEVICE_FAILED,
		[RBX_DEVICE_PORT_DOWN] = RBX_ENDPOINT_PORT_DOWN,
		[RBX_DEVICE_PORT_UP] = RBX_ENDPOINT_PORT_UP,
		[RBX_DEVICE_QP_ENDED] = RBX_ENDPOINT_ENDED,
		[RBX_DEVICE_SRQ_LOW] = RBX_ENDPOINT_RECEIVES_LOW,
	};

	*event = (struct rbx_endpoint_event){
		.kind = kinds[of_device->kind],
		.endpoint = of_device->qp ? of_device->user : NULL,
		.receives = of_device->srq ? of_device->user : NULL,
	};
}

int rbx_endpoint_next_event(struct rbx_context *ctx, struct rbx_endpoint_event *event,
			    int timeout_ms)
{
	uint64_t begin_ns = rbx_now_ns();
	struct rbx_device_event of_device;
	struct pollfd readable;
	int err;

	if (!ctx || !event)
		return rbx_error(-EINVAL, "rbx_endpoint_next_event: a context and room for an event must be given");
	err = timeout_ms ? rbx_guard_wait(ctx, "rbx_endpoint_next_event") :
			   rbx_guard_use(ctx, "rbx_endpoint_next_event");
	if (err)
		return err;
	readable = (struct pollfd){ ctx->device->event_fd, POLLIN, 0 };
	while (ctx->device->ops->get_event(ctx->device, &of_device) == -EAGAIN) {
		int left_ms = rbx_endpoint_left_ms(timeout_ms, begin_ns);

		if (left_ms == 0)
			return rbx_error(-EAGAIN, "the device has no event");
		(void)poll(&readable, 1, left_ms);
	}
	translate(&of_device, event);
	return 0;
}

int rbx_endpoint_event_fd(const struct rbx_context *ctx)
{
	return ctx->device->event_fd;
}
