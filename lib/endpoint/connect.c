/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - connects two endpoints: one program listens, the other connects.
 *
 * Private data is passed on unchanged. A request of the fabric becomes one of the API.
 */
#include <poll.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/endpoint/exchange.h"
#include "lib/endpoint/endpoint.h"

int rbx_endpoint_left_ms(int timeout_ms, uint64_t begin_ns)
{
	uint64_t gone_ms = (rbx_now_ns() - begin_ns) / 1000000;

	if (timeout_ms < 0)
		return -1;
	return gone_ms < (uint64_t)timeout_ms ? timeout_ms - (int)gone_ms : 0;
}

static int data_check(const struct rbx_endpoint_data *data, size_t most)
{
	if (!data || data->length_bytes == 0)
		return 0;
	if (!data->bytes || data->length_bytes > most)
		return rbx_error(-EINVAL, "%zu bytes of private data: at most %zu are possible",
				 data->length_bytes, most);
	return 0;
}

/* If the fabric had made a queue pair, it has destroyed it, and no thread saw it. */
static int failed(struct rbx_endpoint *endpoint, int err, const char *error)
{
	endpoint->qp = NULL;
	rbx_endpoint_free(endpoint);
	return rbx_error(err, "%s", error);
}

/* ---- Connecting -------------------------------------------------------------------*/

int rbx_endpoint_connect(struct rbx_context *ctx, const char *address,
			 const struct rbx_endpoint_options *wanted,
			 const struct rbx_endpoint_data *data,
			 struct rbx_endpoint_data *answer,
			 struct rbx_endpoint **out)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_endpoint_options options;
	struct rbx_endpoint *endpoint;
	struct rbx_connect_init connect;
	struct rbx_qp_init init;
	struct rbx_qp *qp;
	int err;

	if (!ctx || !address || !wanted || !out)
		return rbx_error(-EINVAL, "rbx_endpoint_connect: a context, an address and options must be given");
	err = rbx_guard_wait(ctx, "rbx_endpoint_connect");
	if (!err)
		err = data_check(data, RBX_CONNECT_DATA_MAX);
	if (!err)
		err = rbx_endpoint_make(ctx, wanted, &options, &init, &endpoint);
	if (err)
		return err;
	connect = (struct rbx_connect_init){
		.address = address,
		.timeout_ms = options.timeout_ms,
		.private_data = data ? data->bytes : NULL,
		.private_data_bytes = data ? data->length_bytes : 0,
		.reply_data = answer ? answer->bytes : NULL,
		.reply_data_max_bytes = answer ? answer->length_bytes : 0,
	};
	err = ctx->device->ops->connect(ctx->device, &init, &connect, &qp, error);
	if (answer)
		answer->length_bytes = connect.reply_data_bytes;
	if (err)
		return failed(endpoint, err, error);
	RBX_ASSERT(endpoint->qp == qp);
	if (endpoint->exchanger)
		rbx_exchanger_begin(endpoint);
	*out = endpoint;
	return 0;
}

/* ---- Listening --------------------------------------------------------------------*/

int rbx_endpoint_listen(struct rbx_context *ctx, const char *address,
			struct rbx_endpoint_listener **out)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_endpoint_listener *listener;
	int err;

	if (!ctx || !address || !out)
		return rbx_error(-EINVAL, "rbx_endpoint_listen: a context and an address must be given");
	err = rbx_guard_use(ctx, "rbx_endpoint_listen");
	if (err)
		return err;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return rbx_error(-ENOMEM, "cannot allocate a listener");
	listener->ctx = ctx;
	err = ctx->device->ops->listen(ctx->device, address,
				       &listener->listener, error);
	if (err) {
		free(listener);
		return rbx_error(err, "%s", error);
	}
	RBX_FETCH_ADD(&ctx->listeners_count, 1);
	*out = listener;
	return 0;
}

const char *
rbx_endpoint_listener_address(const struct rbx_endpoint_listener *listener)
{
	return listener->listener->address;
}

int rbx_endpoint_listener_fd(const struct rbx_endpoint_listener *listener)
{
	return listener->listener->event_fd;
}

void rbx_endpoint_listener_close(struct rbx_endpoint_listener *listener)
{
	if (!listener ||
	    rbx_guard_use(listener->ctx, "rbx_endpoint_listener_close"))
		return;
	listener->ctx->device->ops->close_listener(listener->listener);
	RBX_FETCH_ADD(&listener->ctx->listeners_count, (uint32_t)-1);
	free(listener);
}

/* ---- Requests -------------------------------------------------------------------*/

/* A request to connect, while the program has it. */
struct rbx_endpoint_request {
	struct rbx_context *ctx;
	struct rbx_conn_request *request;
};

/* Passes over peers that the fabric has refused. */
static int fit_request(struct rbx_listener *listener, struct rbx_conn_request **request)
{
	const struct rbx_fabric_ops *ops = listener->device->ops;
	int err;

	while (!(err = ops->get_request(listener, request)) && (*request)->unfit)
		ops->reject(*request, NULL, 0);
	return err;
}

int rbx_endpoint_next_request(struct rbx_endpoint_listener *listener,
			      int timeout_ms,
			      struct rbx_endpoint_request **out)
{
	uint64_t begin_ns = rbx_now_ns();
	struct rbx_endpoint_request *request;
	struct pollfd event;
	int err;

	if (!listener || !out)
		return rbx_error(-EINVAL, "rbx_endpoint_next_request: a listener must be given");
	err = rbx_guard_wait(listener->ctx, "rbx_endpoint_next_request");
	if (err)
		return err;
	request = calloc(1, sizeof(*request));
	if (!request)
		return rbx_error(-ENOMEM, "cannot allocate a request");
	request->ctx = listener->ctx;
	event = (struct pollfd){ listener->listener->event_fd, POLLIN, 0 };
	while ((err = fit_request(listener->listener, &request->request)) ==
	       -EAGAIN) {
		int left_ms = rbx_endpoint_left_ms(timeout_ms, begin_ns);

		if (left_ms == 0)
			break;
		(void)poll(&event, 1, left_ms);
	}
	if (err) {
		free(request);
		return rbx_error(err, err == -EAGAIN ? "no program asks to connect" :
						       "the listener has failed");
	}
	*out = request;
	return 0;
}

const void *
rbx_endpoint_request_data(const struct rbx_endpoint_request *request,
			  size_t *length_bytes)
{
	if (length_bytes)
		*length_bytes = request->request->private_data_bytes;
	return request->request->private_data;
}

const char *
rbx_endpoint_request_name(const struct rbx_endpoint_request *request)
{
	return request->request->peer_name;
}

static int accept_data_check(const struct rbx_endpoint_data *data,
			     struct rbx_endpoint **out)
{
	if (!out)
		return rbx_error(-EINVAL, "rbx_endpoint_accept: there must be a pointer for the endpoint");
	return data_check(data, RBX_ACCEPT_DATA_MAX);
}

int rbx_endpoint_accept(struct rbx_endpoint_request *request,
			const struct rbx_endpoint_options *wanted,
			const struct rbx_endpoint_data *data,
			struct rbx_endpoint **out)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_endpoint_options options;
	struct rbx_endpoint *endpoint;
	struct rbx_qp_init init;
	struct rbx_qp *qp;
	int err;

	if (!request || !wanted)
		return rbx_error(-EINVAL, "rbx_endpoint_accept: a request and options must be given");
	err = rbx_guard_use(request->ctx, "rbx_endpoint_accept");
	if (err)
		return err;
	err = accept_data_check(data, out);
	if (!err)
		err = rbx_endpoint_make(request->ctx, wanted, &options, &init,
					&endpoint);
	if (err) { /* the request ends in any case */
		rbx_endpoint_reject(request, NULL);
		return err;
	}
	err = request->ctx->device->ops->accept(
		request->request, &init, data ? data->bytes : NULL,
		data ? data->length_bytes : 0, &qp, error);
	free(request);
	if (err)
		return failed(endpoint, err, error);
	RBX_ASSERT(endpoint->qp == qp);
	if (endpoint->exchanger)
		rbx_exchanger_begin(endpoint);
	*out = endpoint;
	return 0;
}

void rbx_endpoint_reject(struct rbx_endpoint_request *request,
			 const struct rbx_endpoint_data *data)
{
	if (!request || rbx_guard_use(request->ctx, "rbx_endpoint_reject"))
		return;
	request->ctx->device->ops->reject(request->request,
					  data ? data->bytes : NULL,
					  data ? data->length_bytes : 0);
	free(request);
}
