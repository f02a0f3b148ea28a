/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - what the client's control path asks of the world it runs in.
 *
 * The core decides and waits for nothing. Whoever connects to a server, asks it, or
 * repairs a connection has to wait, needs a thread to do so in, and memory: that is the
 * same for a program and for a kernel, so it is written once, here in client/, over this
 * page. port/<host>/host_os.h provides it and is found by the include path, as
 * port_os.h is (core/port.h). A connection itself is the host's: connection.h.
 *
 * host_os.h provides
 *   struct rbx_monitor           a lock, and those who wait for what it guards
 *   rbx_monitor_init(m), rbx_monitor_destroy(m)
 *   rbx_monitor_enter(m), rbx_monitor_leave(m)   nothing blocks in between; any context
 *   rbx_monitor_wait(m)          leaves it until rbx_monitor_wake(), or for no reason, and
 *                                enters it again: look anew at what is waited for
 *   rbx_monitor_wait_until(m, ns)                or until then
 *   rbx_monitor_wait_signal(m)   the same as wait; true: a signal has come that the caller
 *                                is to obey. In a program none ever does
 *   rbx_monitor_wake(m)          all who wait; entered
 *   struct rbx_thread
 *   rbx_thread_start(thread, name, main, argument)    0 or -errno
 *   rbx_thread_join(thread)      waits until main() has returned
 *   rbx_thread_self()            a uintptr_t that no other thread has, and not 0
 *   rbx_thread_leave_reserves()  what the calling thread does can wait: it takes no
 *                                memory of the last there is. Others may
 *   rbx_now_ns()                 since some moment of the past; never steps back
 *   rbx_pause_ns(ns)             the caller sleeps
 *   rbx_memory_make(bytes)       zeroed, or NULL; what repairs a connection calls it not
 *   rbx_memory_try(bytes)        not zeroed, and rather NULL than that another goes short
 *   rbx_memory_free(memory)      also of NULL
 *   rbx_memory_wipe(memory, bytes)    before it is freed: it held keys
 *   snprintf()                   as in C
 *   struct rbx_address           of a server, as the host connects to it; its name is
 *                                the text of it
 *   rbx_text_copy(to, bytes, from)    as much of a text as fits, ended by 0
 *
 * Threads begin no I/O to get memory, as that I/O may be what waits for them.
 */
#ifndef RBX_CLIENT_HOST_H
#define RBX_CLIENT_HOST_H

#include "core/port.h"
#include "host_os.h"

/* Random bytes that nobody can guess. 0 or -errno, of which rbx_error() was told. */
int rbx_random(void *bytes, size_t length_bytes);

/* Tells whoever asked, or the log, what failed and why. Returns err. */
int rbx_error(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What the status of a work request means, in words. */
const char *rbx_status_text(int status);

#endif
