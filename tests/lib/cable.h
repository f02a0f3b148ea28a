/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cable.h - a TCP cable between a client and a server that tests can cut, hold
 * and disturb.
 *
 * It listens on a port of its own and joins whatever connects there with the
 * server. One thread carries the bytes of all connections, so that an order
 * given here holds from the next byte on.
 */
#ifndef RBX_TESTS_CABLE_H
#define RBX_TESTS_CABLE_H

#include <stdbool.h>
#include <stdint.h>

struct cable;

/* Connections at a time; more are refused. */
#define CABLE_WIRES_MAX 64u

struct cable *cable_lay(const char *server_address);
void cable_remove(struct cable *cable);
const char *cable_address(const struct cable *cable);

/* Ends all connections that there are; bytes under way are lost. */
void cable_cut(struct cable *cable);
/* Ends the newest connection only. */
void cable_cut_newest(struct cable *cable);
/*
 * Ends all connections at the client's end only. What the client had sent and
 * the server not received comes to the server after delay_ms: the attempt of
 * yesterday that arrives today.
 */
void cable_haunt(struct cable *cable, uint32_t delay_ms);
/* Carries nothing, in either direction, until it is let go. New connections
 * are taken, and held as well. */
void cable_hold(struct cable *cable, bool held);
/* The newest connection stays, and carries nothing for the rest of its life. */
void cable_hold_newest(struct cable *cable);
/* The connections that are made from now on, but for the first `skip`, fare the
 * same as soon as they have brought the client the server's hello. What else the
 * server may say by itself comes sooner or later than its first answer. */
void cable_hold_those_to_come(struct cable *cable, uint32_t skip);
/* Turns each byte of the next `count` carried towards the client around. */
void cable_garble(struct cable *cable, uint32_t count);
/* Refuses new connections. */
void cable_unplug(struct cable *cable, bool unplugged);

#endif
