/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - connects two endpoints: one program listens, the other connects.
 *
 * Private data is passed on unchanged.
 */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "kernel/fabric_ib/listen.h"
#include "kernel/lib/endpoint/endpoint.h"

struct rbx_endpoint_listener {
	struct list_head link; /* in its domain's list; guarded by its lock */
	struct rbx_protection_domain *domain;
	struct rbx_ib_listener listener;
	wait_queue_head_t asking;
	void (*asked)(struct rbx_endpoint_listener *listener, void *user);
	void *user;
	char address[RBX_ADDRESS_TEXT_BYTES];
};

struct rbx_endpoint_request {
	struct rbx_protection_domain *domain;
	struct rbx_ib_request *request;
	char name[RBX_ADDRESS_TEXT_BYTES];
};

static int data_check(const struct rbx_endpoint_data *data, size_t most)
{
	if (!data || !data->length_bytes)
		return 0;
	return data->bytes && data->length_bytes <= most ? 0 : -EINVAL;
}

static const uint8_t *bytes_of(const struct rbx_endpoint_data *data)
{
	return data && data->length_bytes ? data->bytes : NULL;
}

static size_t length_of(const struct rbx_endpoint_data *data)
{
	return data ? data->length_bytes : 0;
}

/* ---- Connecting ----------------------------------------------------------------*/

static void answer_give(const struct rbx_ib_conn *conn,
			struct rbx_endpoint_data *answer)
{
	if (!answer)
		return;
	answer->length_bytes = min(answer->length_bytes, conn->reply_bytes);
	memcpy(answer->bytes, conn->reply, answer->length_bytes);
}

/* end: in jiffies. Returns at least 1 ms. */
static uint32_t left_ms(unsigned long end)
{
	return time_before(jiffies, end) ? jiffies_to_msecs(end - jiffies) : 1;
}

static int connect_endpoint(struct rbx_endpoint *endpoint,
			    struct sockaddr_storage *address,
			    const struct rbx_endpoint_data *data)
{
	unsigned long end = jiffies + msecs_to_jiffies(endpoint->timeout_ms);
	int err = rbx_ib_conn_resolve(&endpoint->conn, &init_net, address,
				      rbx_endpoint_ended, endpoint->timeout_ms);

	if (!err)
		err = rbx_endpoint_build(endpoint);
	if (!err)
		err = rbx_ib_conn_connect(&endpoint->conn, bytes_of(data),
					  length_of(data), left_ms(end));
	return err ? err : rbx_endpoint_begin(endpoint);
}

int rbx_endpoint_connect(struct rbx_protection_domain *domain,
			 const char *address,
			 const struct rbx_endpoint_options *options,
			 const struct rbx_endpoint_data *data,
			 struct rbx_endpoint_data *answer,
			 struct rbx_endpoint **out)
{
	struct sockaddr_storage at = { 0 };
	struct rbx_endpoint *endpoint;
	int err = rbx_address_parse(address, &at);

	if (!err)
		err = data_check(data, RBX_IB_CONNECT_DATA_MAX);
	if (!err)
		err = rbx_endpoint_make(domain, options, &endpoint);
	if (err) {
		if (answer)
			answer->length_bytes = 0;
		return err;
	}
	err = connect_endpoint(endpoint, &at, data);
	answer_give(&endpoint->conn, answer);
	if (err)
		rbx_endpoint_end(endpoint);
	else
		*out = endpoint;
	return err;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_connect);

/* ---- Listening -----------------------------------------------------------------*/

static void somebody_asks(struct rbx_ib_listener *below)
{
	struct rbx_endpoint_listener *listener =
		container_of(below, struct rbx_endpoint_listener, listener);

	wake_up(&listener->asking);
	if (listener->asked)
		listener->asked(listener, listener->user);
}

void rbx_endpoint_listeners_wake_locked(struct rbx_protection_domain *domain)
{
	struct rbx_endpoint_listener *listener;

	lockdep_assert_held(&domain->lock);
	list_for_each_entry(listener, &domain->listeners, link)
		wake_up(&listener->asking);
}

int rbx_endpoint_listen(struct rbx_protection_domain *domain, const char *address,
			void (*asked)(struct rbx_endpoint_listener *listener,
				      void *user),
			void *user, struct rbx_endpoint_listener **out)
{
	struct rbx_endpoint_listener *listener;
	struct sockaddr_storage at = { 0 };
	int err = rbx_address_parse(address, &at);

	if (!err)
		err = rbx_domain_enter(domain);
	if (err)
		return err;
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener) {
		rbx_domain_leave(domain);
		return -ENOMEM;
	}
	listener->domain = domain;
	listener->asked = asked;
	listener->user = user;
	init_waitqueue_head(&listener->asking);
	mutex_lock(&domain->lock);
	list_add(&listener->link, &domain->listeners);
	mutex_unlock(&domain->lock);
	err = rbx_ib_listen(&listener->listener, &init_net, &at, domain->device,
			    somebody_asks);
	if (err) {
		rbx_endpoint_listener_close(listener);
		return err;
	}
	snprintf(listener->address, sizeof(listener->address), "%pISpc",
		 &listener->listener.id->route.addr.src_addr);
	*out = listener;
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_listen);

const char *
rbx_endpoint_listener_address(const struct rbx_endpoint_listener *listener)
{
	return listener->address;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_listener_address);

void rbx_endpoint_listener_close(struct rbx_endpoint_listener *listener)
{
	if (!listener)
		return;
	rbx_ib_listener_close(&listener->listener);
	mutex_lock(&listener->domain->lock);
	list_del(&listener->link);
	mutex_unlock(&listener->domain->lock);
	rbx_domain_leave(listener->domain);
	kfree(listener);
}
EXPORT_SYMBOL_GPL(rbx_endpoint_listener_close);

/* ---- Requests -------------------------------------------------------------------*/

/* True if a request was taken, or if none will ever come. */
static bool request_take(struct rbx_endpoint_listener *listener,
			 struct rbx_endpoint_request *request)
{
	request->request = rbx_ib_listener_take(&listener->listener);
	return request->request || READ_ONCE(listener->domain->is_gone);
}

/* Takes a request when one has come. Taking may sleep, so it is not done in the condition
 * of a wait. */
static int request_await(struct rbx_endpoint_listener *listener, int timeout_ms,
			 struct rbx_endpoint_request *request)
{
	long left = timeout_ms < 0 ? MAX_SCHEDULE_TIMEOUT :
				     (long)msecs_to_jiffies(timeout_ms);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	bool is_over;

	add_wait_queue(&listener->asking, &wait);
	while (!(is_over = request_take(listener, request)) && left &&
	       !signal_pending(current))
		left = wait_woken(&wait, TASK_INTERRUPTIBLE, left);
	remove_wait_queue(&listener->asking, &wait);
	if (is_over)
		return request->request ? 0 : -ENODEV;
	return left ? -ERESTARTSYS : -EAGAIN;
}

int rbx_endpoint_next_request(struct rbx_endpoint_listener *listener,
			      int timeout_ms, struct rbx_endpoint_request **out)
{
	struct rbx_endpoint_request *request;
	int err = rbx_domain_enter(listener->domain);

	if (err)
		return err;
	request = kzalloc(sizeof(*request), GFP_KERNEL);
	err = request ? request_await(listener, timeout_ms, request) : -ENOMEM;
	if (err) {
		kfree(request);
		rbx_domain_leave(listener->domain);
		return err;
	}
	request->domain = listener->domain;
	snprintf(request->name, sizeof(request->name), "%pISpc",
		 &request->request->id->route.addr.dst_addr);
	*out = request;
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_next_request);

const void *
rbx_endpoint_request_data(const struct rbx_endpoint_request *request,
			  size_t *length_bytes)
{
	if (length_bytes)
		*length_bytes = request->request->private_data_bytes;
	return request->request->private_data;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_request_data);

const char *
rbx_endpoint_request_name(const struct rbx_endpoint_request *request)
{
	return request->name;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_request_name);

/* Rejects the request, unless a connection has taken its id. */
static void request_end(struct rbx_endpoint_request *request,
			const struct rbx_endpoint_data *data)
{
	rbx_ib_request_end(request->request, bytes_of(data),
			   min_t(size_t, length_of(data),
				 RBX_IB_REJECT_DATA_MAX));
	rbx_domain_leave(request->domain);
	kfree(request);
}

static int accept_endpoint(struct rbx_endpoint *endpoint,
			   struct rbx_ib_request *request,
			   const struct rbx_endpoint_data *data)
{
	int err;

	rbx_ib_conn_adopt(&endpoint->conn, request->id, rbx_endpoint_ended);
	request->id = NULL;
	err = READ_ONCE(request->has_left) ? -ENOTCONN :
					     rbx_endpoint_build(endpoint);
	if (err)
		return err;
	err = rbx_ib_conn_accept(&endpoint->conn, request, bytes_of(data),
				 length_of(data), endpoint->timeout_ms);
	/* The connection manager has several errors for this. */
	if (err && err != -ETIMEDOUT && err != -ENOMEM && err != -ENODEV)
		err = -ENOTCONN;
	return err ? err : rbx_endpoint_begin(endpoint);
}

int rbx_endpoint_accept(struct rbx_endpoint_request *request,
			const struct rbx_endpoint_options *options,
			const struct rbx_endpoint_data *data,
			struct rbx_endpoint **out)
{
	struct rbx_endpoint *endpoint;
	int err = data_check(data, RBX_IB_ACCEPT_DATA_MAX);

	if (!err)
		err = rbx_endpoint_make(request->domain, options, &endpoint);
	if (!err) {
		err = accept_endpoint(endpoint, request->request, data);
		if (err)
			rbx_endpoint_end(endpoint);
		else
			*out = endpoint;
	}
	request_end(request, NULL);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_accept);

void rbx_endpoint_reject(struct rbx_endpoint_request *request,
			 const struct rbx_endpoint_data *data)
{
	request_end(request, data);
}
EXPORT_SYMBOL_GPL(rbx_endpoint_reject);
