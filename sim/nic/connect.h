/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.h - connections between nodes: "n3:7471" is port 7471 of node 3.
 *
 * A request takes the link one way and the answer the other way; the connecting side waits
 * meanwhile. If its time is over it gives up; an end that is accepted later finds no peer and
 * breaks.
 */
#ifndef RBX_SIM_NIC_CONNECT_H
#define RBX_SIM_NIC_CONNECT_H

#include "fabric/fabric.h"

int rbx_nic_connect(struct rbx_device *base, const struct rbx_qp_init *init,
		    struct rbx_connect_init *connect, struct rbx_qp **qp,
		    char *error);
int rbx_nic_listen(struct rbx_device *base, const char *address,
		   struct rbx_listener **listener, char *error);
void rbx_nic_close_listener(struct rbx_listener *listener);
int rbx_nic_get_request(struct rbx_listener *listener,
			struct rbx_conn_request **request);
int rbx_nic_accept(struct rbx_conn_request *request,
		   const struct rbx_qp_init *init, const void *private_data,
		   size_t private_data_bytes, struct rbx_qp **qp, char *error);
void rbx_nic_reject(struct rbx_conn_request *request, const void *private_data,
		    size_t private_data_bytes);

/* Before a run. */
void rbx_nic_connect_begin(void);
/* The node's listeners are gone, and the requests that wait there. */
void rbx_nic_connect_stop(uint32_t node);

#endif
