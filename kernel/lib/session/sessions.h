/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sessions.h - what the kernel adds to the sessions of client/session.h.
 */
#ifndef RBX_KERNEL_SESSIONS_H
#define RBX_KERNEL_SESSIONS_H

#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "client/session.h"

struct rbx_ib_conn;
struct rbx_wire_attach;

/* Called by the module: makes what all sessions share. */
int rbx_sessions_init(void);
void rbx_sessions_exit(void);

/* Makes and connects one data queue pair. The caller destroys the connection, even after
 * a failure. -ENOTCONN: the session is lost; -EDEADLK. It waits until then at most; 0:
 * without a limit. Blocks. */
int rbx_session_connect_qp(struct rbx_session *session,
			   struct rbx_ib_conn *conn,
			   struct ib_qp_init_attr *init,
			   void (*ended)(struct rbx_ib_conn *conn),
			   uint64_t until_ns);

/* ---- Only for the files of this folder ------------------------------------------------*/

/* Connects with the attach message. 0 or -errno. why is changed only if the server gave a
 * reason. The caller has taken the session. */
int rbx_session_connect(struct rbx_session *session, struct rbx_ib_conn *conn,
			const struct rbx_wire_attach *attach, char *why);
/* Queues work of a session after a delay; it runs even if memory is short. Any context. */
void rbx_session_queue(struct delayed_work *work, unsigned int delay_ms);

#endif
