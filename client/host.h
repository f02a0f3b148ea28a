/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - what the client's control path needs from its environment.
 *
 * The core decides and never waits. Connecting to a server, asking it, or repairing a
 * connection needs waiting, a thread to wait in, and memory. That is the same for a program
 * and for a kernel, so it is written once, here in client/, over this page.
 * port/<host>/host_os.h provides it and is found by the include path, as port_os.h is
 * (core/port.h). The host itself makes the connections: connection.h.
 *
 * host_os.h provides
 *   struct rbx_monitor           a lock, with threads that wait for what it guards
 *   rbx_monitor_init(m), rbx_monitor_destroy(m)
 *   rbx_monitor_enter(m), rbx_monitor_leave(m)   nothing blocks in between; any context
 *   rbx_monitor_wait(m)          leaves it until rbx_monitor_wake(), or for no reason, and
 *                                enters it again: the caller checks its condition again
 *   rbx_monitor_wait_until(m, ns)                the same, at most until then
 *   rbx_monitor_wait_signal(m)   the same as wait; true: a signal has come that the caller
 *                                has to obey. In a program none ever does
 *   rbx_monitor_wake(m)          wakes all threads that wait; entered
 *   struct rbx_thread
 *   rbx_thread_start(thread, name, main, argument)    0 or -errno
 *   rbx_thread_join(thread)      waits until main() has returned
 *   rbx_thread_self()            a uintptr_t that no other thread has, and not 0
 *   rbx_thread_leave_reserves()  the work of the calling thread can wait, so it leaves
 *                                the last memory to other threads
 *   rbx_now_ns()                 since some moment of the past; never goes back
 *   rbx_pause_ns(ns)             the caller sleeps
 *   rbx_memory_make(bytes)       zeroed, or NULL; repairs of connections do not call it
 *   rbx_memory_try(bytes)        not zeroed; NULL if others could run out of memory
 *   rbx_memory_free(memory)      NULL is allowed
 *   rbx_memory_wipe(memory, bytes)    before it is freed: it held keys
 *   snprintf()                   as in C
 *   struct rbx_address           of a server, as the host connects to it; `name` is its text
 *   rbx_text_copy(to, bytes, from)    as much of a text as fits, ended by 0
 *
 * Threads begin no I/O to get memory, because that I/O may itself wait for them.
 */
#ifndef RBX_CLIENT_HOST_H
#define RBX_CLIENT_HOST_H

#include "core/port.h"
#include "host_os.h"

/* Random bytes that cannot be guessed. Returns 0 or -errno, which was reported by rbx_error(). */
int rbx_random(void *bytes, size_t length_bytes);

/* Reports what failed and why, to the caller of the API or to the log. Returns err. */
int rbx_error(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Bytes of such a text, with its end. */
#define RBX_ERROR_BYTES 256u
/* What the calling thread has reported last, for another thread that reports it again(): in a
 * program each has a text of its own. In a kernel it is in the log, and not reported twice. */
const char *rbx_error_text(void);
/* Returns err. */
int rbx_error_again(int err, const char *text);

/* What the status of a work request means, in words. */
const char *rbx_status_text(int status);

#endif
