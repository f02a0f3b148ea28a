/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.c - opens and closes the soft device, and reports what it can do.
 *
 * A device is a table of keys, a service thread and a list of qps. There is
 * no limit to the number of devices of a process; each has its own keys, and a
 * key of one means nothing to another.
 */
#include "device.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "completion.h"
#include "connect.h"
#include "queue_pair.h"
#include "receive_queue.h"
#include "send_queue.h"
#include "shared_receives.h"
#include "window.h"

void soft_explain(char *error, const char *format, ...)
{
	va_list args;

	if (!error)
		return;
	va_start(args, format);
	vsnprintf(error, RBX_ERROR_TEXT_MAX, format, args);
	va_end(args);
}

static int soft_probe(char *error)
{
	(void)error;
	return 0; /* sockets are all it needs */
}

static void describe(struct soft_device *device)
{
	struct rbx_device_caps *caps = &device->device.caps;
	const char *mapping =
		device->same_host_mapping ? ", same-host mapping" : "";
	const char *registered =
		device->keys.has_any_lkey ? "" : ", registered memory only";

	if (device->overload.cost_ns)
		snprintf(caps->description, sizeof(caps->description),
			 "soft (tcp%s%s, overload beyond %u work requests: %u "
			 "ns for each)", mapping, registered,
			 device->overload.work_requests,
			 device->overload.cost_ns);
	else
		snprintf(caps->description, sizeof(caps->description),
			 "soft (tcp%s%s)", mapping, registered);
}

static void caps_fill(struct rbx_device_caps *caps,
		      const struct soft_device *device)
{
	bool mapping = device->same_host_mapping;
	bool registers = !device->keys.has_any_lkey;

	*caps = (struct rbx_device_caps){
		.max_qp = SOFT_QPS_MAX,
		.max_sge = SOFT_SGE_MAX,
		.max_message_bytes = SOFT_MESSAGE_MAX_BYTES,
		.max_send_wr = SOFT_SEND_DEPTH_MAX,
		.max_recv_wr = SOFT_RECV_DEPTH_MAX,
		.max_cqe = SOFT_CQ_DEPTH_MAX,
		.max_recv_sge = SOFT_SGE_MAX,
		.max_inline_bytes = SOFT_INLINE_MAX_BYTES,
		.max_srq_wr = SOFT_RECV_DEPTH_MAX,
		.max_srq_sge = SOFT_SGE_MAX,
		.has_immediate = true,
		.has_invalidate = true,
		.has_remote_invalidate = true,
		.has_window_invalidate = true,
		.has_atomics = true,
		.has_any_lkey = device->keys.has_any_lkey,
		.any_lkey = SOFT_ANY_LKEY,
	};
	snprintf(caps->name, sizeof(caps->name), "%s%s",
		 mapping ? "mapping" : "tcp", registers ? ":registered" : "");
}

static int tls_open(struct soft_device *device, const struct rbx_device_options *options,
		    char *error)
{
	int err;

	device->tls_use = options->tls;
	if (device->tls_use == RBX_TLS_NEVER)
		return 0;
	err = soft_tls_keys_open(&device->tls_keys, options->tls_key);
	if (err)
		soft_explain(error, "cannot set up TLS 1.3: %s; see whether the settings of "
			     "OpenSSL on this machine allow TLS_AES_128_GCM_SHA256 with a "
			     "pre-shared key", strerror(-err));
	return err;
}

static int soft_add_tls_key(struct rbx_device *base, const struct rbx_tls_key *key)
{
	struct soft_device *device = soft_device_of(base);

	if (!device->tls_keys)
		return -EINVAL;
	return soft_tls_keys_add(device->tls_keys, key);
}

static int soft_open(const struct rbx_device_options *options,
		     struct rbx_device **out, char *error)
{
	struct soft_device *device;
	uint32_t spin_us;
	int err;

	device = calloc(1, sizeof(*device));
	if (!device) {
		soft_explain(error, "cannot open the soft device: no memory");
		return -ENOMEM;
	}
	device->device.ops = &rbx_fabric_soft;
	spin_us = options->service_spin_us;
	device->service_spin_ns =
		1000ull * (spin_us ? spin_us : SOFT_SERVICE_SPIN_US);
	pthread_mutex_init(&device->lock, NULL);
	err = rbx_device_events_open(&device->events, &device->device);
	if (err) {
		soft_explain(error, "cannot open the soft device: %s; raise the "
			     "limit of open files", strerror(-err));
		goto out_free;
	}
	err = soft_keys_open(&device->keys, options->same_host_mapping, error);
	if (err)
		goto out_events;
	err = tls_open(device, options, error);
	if (err)
		goto out_keys;
	/* What cannot be shared safely is not shared: no mapping. */
	device->same_host_mapping = device->keys.own.shown.words;
	device->overload.work_requests = options->overload_work_requests;
	device->overload.cost_ns = options->overload_cost_ns;
	device->keys.has_any_lkey = !options->needs_registration;
	caps_fill(&device->device.caps, device);
	describe(device);
	err = soft_service_start(device, error);
	if (err)
		goto out_keys;
	*out = &device->device;
	return 0;

out_keys:
	soft_tls_keys_close(device->tls_keys);
	soft_keys_close(&device->keys);
out_events:
	rbx_device_events_close(&device->events);
out_free:
	pthread_mutex_destroy(&device->lock);
	free(device);
	return err;
}

static void soft_close(struct rbx_device *base)
{
	struct soft_device *device = soft_device_of(base);

	soft_service_stop(device);
	soft_tls_keys_close(device->tls_keys);
	soft_keys_close(&device->keys);
	rbx_device_events_close(&device->events);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

static int soft_get_event(struct rbx_device *base,
			  struct rbx_device_event *event)
{
	return rbx_device_events_take(&soft_device_of(base)->events, event);
}

void soft_device_wait_for_qps(struct soft_device *device)
{
	struct soft_qp *qp;

	pthread_mutex_lock(&device->lock);
	for (qp = device->qps; qp; qp = qp->next) {
		soft_qp_lock(qp);
		soft_qp_unlock(qp);
	}
	pthread_mutex_unlock(&device->lock);
}

const struct rbx_fabric_ops rbx_fabric_soft = {
	.name = "soft",
	.probe = soft_probe,
	.open = soft_open,
	.close = soft_close,
	.create_domain = soft_create_domain,
	.destroy_domain = soft_destroy_domain,
	.register_memory = soft_register_memory,
	.deregister_memory = soft_deregister_memory,
	.create_cq = soft_create_cq,
	.destroy_cq = soft_destroy_cq,
	.poll = soft_poll,
	.arm = soft_arm,
	.consume_events = soft_consume_events,
	.connect = soft_connect,
	.listen = soft_listen,
	.close_listener = soft_close_listener,
	.get_request = soft_get_request,
	.accept = soft_accept,
	.reject = soft_reject,
	.disconnect = soft_disconnect,
	.destroy_qp = soft_destroy_qp,
	.post_send = soft_post_send,
	.post_recv = soft_post_recv,
	.create_srq = soft_create_srq,
	.destroy_srq = soft_destroy_srq,
	.post_srq_recv = soft_post_srq_recv,
	.set_srq_limit = soft_set_srq_limit,
	.create_window = soft_create_window,
	.destroy_window = soft_destroy_window,
	.get_event = soft_get_event,
	.get_traffic = soft_get_traffic,
	.add_tls_key = soft_add_tls_key,
};
