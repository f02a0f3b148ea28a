/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* drain.c - drains and destroys a connection, see drain.h. */
#include "kernel/lib/drain.h"

bool rbx_drain_and_destroy(struct rbx_ib_conn *conn, struct rbx_poller *poller,
			   uint32_t timeout_ms, bool *is_over, const char *name)
{
	bool all_is_back = !conn->id || !conn->id->qp ||
			   !rbx_ib_conn_drain(conn, timeout_ms);

	if (!all_is_back) {
		pr_warn("rdmabox: %s: the device does not give back what was posted\n",
			name);
		rbx_poller_lock(poller);
		*is_over = true;
		rbx_poller_unlock(poller);
	}
	rbx_ib_conn_destroy(conn);
	if (!all_is_back)
		rbx_poller_sweep(poller);
	return all_is_back;
}
