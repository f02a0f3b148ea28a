/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sessions.h - what a session of client/session.h has besides in the kernel.
 */
#ifndef RBX_KERNEL_SESSIONS_H
#define RBX_KERNEL_SESSIONS_H

#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "client/session.h"

struct rbx_ib_conn;
struct rbx_wire_attach;

/* For the module: what all sessions share. */
int rbx_sessions_init(void);
void rbx_sessions_exit(void);

/* Makes and connects one data queue pair; after a failure, too, the caller
 * destroys the connection. -ENOTCONN while the session is lost; -EDEADLK. Not for longer
 * than until then; 0: for as long as it takes. Blocks. */
int rbx_session_connect_qp(struct rbx_session *session,
			   struct rbx_ib_conn *conn,
			   struct ib_qp_init_attr *init,
			   void (*ended)(struct rbx_ib_conn *conn),
			   uint64_t until_ns);

/* ---- For the files of this folder only ----------------------------------------------*/

/* Connects with what attach says. 0 or -errno; why is as it was, unless the server gave a
 * reason. Of who has taken the session. */
int rbx_session_connect(struct rbx_session *session, struct rbx_ib_conn *conn,
			const struct rbx_wire_attach *attach, char *why);
/* Does some work of a session in a while, also while memory is short. Any context. */
void rbx_session_queue(struct delayed_work *work, unsigned int delay_ms);

#endif
