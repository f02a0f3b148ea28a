/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * serve.h - the parts of rdmabox serve.
 *
 *	serve.c         starts the server and waits for a signal
 *	options.c       the options, and what does not go together
 *	reload.c        takes them over again at SIGHUP
 *	notify.c        tells systemd
 *	drain.c         the end: lets clients move away, or cuts them off
 *	announce.c      is a member of a pool
 *	metrics.c       Prometheus
 */
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include <rdmabox/pool.h>
#include <rdmabox/server.h>
#include <signal.h>

#include "cli/commands.h"

struct serve_options {
	struct rbx_server_options server;
	char config[4096]; /* "": there is no file */
	char metrics_at[128]; /* "": nowhere */
	double drain_timeout_s;
	char announce_at[512]; /* the pool; "": none */
	char address[RBX_POOL_ADDRESS_BYTES]; /* there; "": where it listens */
};

extern struct serve_options serve_options;

/* What needs no server to be seen wrong. Returns 0 or an exit code. */
int serve_options_check(void);

int cli_serve(int argc, char **argv);

/* On stderr, unless it would wait: the process that read it may have stopped to. */
void serve_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Tells systemd, if it has started us. */
void serve_notify(const char *state);

/* Tells what came of it. */
void serve_reload(struct rbx_server *server, int argc, char **argv);

struct announce;

/* Begins to announce the server, if there is a pool. 0, or an exit code after saying why. */
int serve_announce_start(struct announce **announce, struct rbx_server *server);
/* Takes the entry back. NULL is allowed. */
void serve_announce_stop(struct announce *announce);

/**
 * serve_drain() - lets clients move their data away, for the drain timeout at most.
 * @signals: blocked in all threads; one of them ends the process on the spot.
 */
void serve_drain(struct rbx_server *server, const sigset_t *signals);

#endif
