/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.c - takes connection requests of peers, see listen.h.
 */
#include "kernel/fabric_ib/listen.h"

#include <linux/slab.h>
#include <rdma/ib_cm.h>

/* ---- Events ------------------------------------------------------------------*/

/* An event for a request that waits, or that its owner has not answered yet. */
static int request_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rbx_ib_request *request = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_CHANGE:
		break;
	default:
		WRITE_ONCE(request->has_left, true);
	}
	return 0; /* we keep the id */
}

static struct rbx_ib_request *request_make(struct rdma_cm_id *id,
					   const struct rdma_conn_param *param)
{
	struct rbx_ib_request *request = kzalloc(sizeof(*request), GFP_KERNEL);

	if (!request)
		return NULL;
	request->id = id;
	request->until = jiffies + msecs_to_jiffies(RBX_IB_WAITING_MS);
	request->responder_resources = param->responder_resources;
	request->initiator_depth = param->initiator_depth;
	if (param->private_data) {
		request->private_data_bytes =
			min_t(size_t, param->private_data_len,
			      sizeof(request->private_data));
		memcpy(request->private_data, param->private_data,
		       request->private_data_bytes);
	}
	return request;
}

/* -errno: the request is rejected. */
static int request_admit(struct rbx_ib_listener *listener,
			 struct rdma_cm_id *id,
			 const struct rdma_conn_param *param)
{
	struct rbx_ib_request *request;
	bool fits;

	if (id->device != listener->device)
		return -EXDEV;
	request = request_make(id, param);
	if (!request)
		return -ENOMEM;
	spin_lock(&listener->lock);
	fits = listener->waiting_count < RBX_IB_WAITING_MAX;
	if (fits) {
		/* Events of this id wait until the current one is over. */
		id->context = request;
		id->event_handler = request_event;
		list_add_tail(&request->link, &listener->waiting);
		listener->waiting_count++;
	}
	spin_unlock(&listener->lock);
	if (!fits) {
		kfree(request);
		return -EAGAIN;
	}
	schedule_delayed_work(&listener->reject_late,
			      msecs_to_jiffies(RBX_IB_WAITING_MS) + 1);
	listener->asked(listener);
	return 0;
}

static int listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	/* If a request is not admitted, the connection manager destroys its id, which
	 * rejects it. The id of the listener stays until it is closed. */
	return event->event == RDMA_CM_EVENT_CONNECT_REQUEST ?
		       request_admit(id->context, id, &event->param.conn) :
		       0;
}

/* ---- Requests -------------------------------------------------------------------*/

void rbx_ib_request_end(struct rbx_ib_request *request,
			const uint8_t *private_data, size_t private_data_bytes)
{
	RBX_ASSERT(private_data_bytes <= RBX_IB_REJECT_DATA_MAX);
	if (request->id) {
		(void)rdma_reject(request->id, private_data,
				  (u8)private_data_bytes,
				  IB_CM_REJ_CONSUMER_DEFINED);
		rdma_destroy_id(request->id);
	}
	kfree(request);
}

/* Takes the oldest request if it may be rejected: either all are to be rejected, or it
 * has waited too long. */
static struct rbx_ib_request *waiting_take(struct rbx_ib_listener *listener,
					   bool only_late)
{
	struct rbx_ib_request *request;

	spin_lock(&listener->lock);
	request = list_first_entry_or_null(&listener->waiting,
					   struct rbx_ib_request, link);
	if (request && only_late && time_before(jiffies, request->until))
		request = NULL;
	if (request) {
		list_del(&request->link);
		listener->waiting_count--;
	}
	spin_unlock(&listener->lock);
	return request;
}

struct rbx_ib_request *rbx_ib_listener_take(struct rbx_ib_listener *listener)
{
	struct rbx_ib_request *request;

	while ((request = waiting_take(listener, false))) {
		if (!READ_ONCE(request->has_left))
			break;
		rbx_ib_request_end(request, NULL, 0);
	}
	return request;
}

static void reject_late(struct work_struct *work)
{
	struct rbx_ib_listener *listener = container_of(
		to_delayed_work(work), struct rbx_ib_listener, reject_late);
	struct rbx_ib_request *request;
	unsigned long next = 0;

	while ((request = waiting_take(listener, true)))
		rbx_ib_request_end(request, NULL, 0);
	spin_lock(&listener->lock);
	request = list_first_entry_or_null(&listener->waiting,
					   struct rbx_ib_request, link);
	if (request)
		next = time_before(jiffies, request->until) ?
			       request->until - jiffies + 1 : 1;
	spin_unlock(&listener->lock);
	if (next)
		schedule_delayed_work(&listener->reject_late, next);
}

/* ---- Open and close -------------------------------------------------------------*/

int rbx_ib_listen(struct rbx_ib_listener *listener, struct net *net,
		  struct sockaddr_storage *address,
		  const struct ib_device *device,
		  void (*asked)(struct rbx_ib_listener *listener))
{
	int err;

	*listener = (struct rbx_ib_listener){ .device = device, .asked = asked };
	spin_lock_init(&listener->lock);
	INIT_LIST_HEAD(&listener->waiting);
	INIT_DELAYED_WORK(&listener->reject_late, reject_late);
	listener->id = rdma_create_id(net, listener_event, listener,
				      RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener->id)) {
		err = PTR_ERR(listener->id);
		listener->id = NULL;
		return err;
	}
	err = rdma_bind_addr(listener->id, (struct sockaddr *)address);
	/* Without a device it listens on all addresses. */
	if (!err && listener->id->device && listener->id->device != device)
		err = -EXDEV;
	if (!err)
		err = rdma_listen(listener->id, RBX_IB_WAITING_MAX);
	if (err)
		rbx_ib_listener_close(listener);
	return err;
}

void rbx_ib_listener_close(struct rbx_ib_listener *listener)
{
	struct rbx_ib_request *request;

	if (!listener->id)
		return;
	rdma_destroy_id(listener->id); /* no event comes after this */
	listener->id = NULL;
	cancel_delayed_work_sync(&listener->reject_late);
	while ((request = waiting_take(listener, false)))
		rbx_ib_request_end(request, NULL, 0);
}
