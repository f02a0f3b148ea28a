/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cable.c - see cable.h. */
#include "tests/lib/cable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/clock.h"

#define BUFFER_BYTES (1u << 20)
#define LOOK_MS 5 /* at orders, and at what is delayed */

/* What was read at one end and is to be written at the other. */
struct flow {
	uint32_t begin, end;
	uint8_t bytes[BUFFER_BYTES];
};

enum { CLIENT, SERVER };

struct wire {
	bool used;
	bool held; /* carries nothing any more */
	bool is_ghost; /* the client's end is closed */
	uint64_t due_ns; /* of a ghost: nothing is carried before */
	uint64_t number; /* when it was made */
	bool has_brought; /* the client anything */
	int fds[2]; /* CLIENT, SERVER */
	struct flow flows[2]; /* towards the client, the server */
};

struct cable {
	struct sockaddr_in server;
	char address[32];
	int listener;
	pthread_t thread;
	pthread_mutex_t lock; /* guards all below */
	bool stop, held, unplugged;
	uint32_t garble_count;
	uint64_t hold_from; /* number of a wire */
	uint64_t wires_made;
	struct wire wires[CABLE_WIRES_MAX];
};

static void wire_end(struct wire *wire)
{
	/* A reset, as a cut is: what the buffers hold is not delivered. */
	struct linger linger = { .l_onoff = 1 };

	for (int i = wire->is_ghost ? SERVER : CLIENT; i <= SERVER; i++) {
		setsockopt(wire->fds[i], SOL_SOCKET, SO_LINGER, &linger,
			   sizeof(linger));
		close(wire->fds[i]);
	}
	wire->used = false;
	wire->is_ghost = false;
}

static int connect_server(struct cable *cable)
{
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&cable->server,
		    sizeof(cable->server))) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static struct wire *free_wire(struct cable *cable)
{
	for (uint32_t i = 0; i < CABLE_WIRES_MAX; i++)
		if (!cable->wires[i].used)
			return &cable->wires[i];
	return NULL;
}

static void take_connection(struct cable *cable)
{
	struct wire *wire = free_wire(cable);
	int one = 1;
	int fd = accept4(cable->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!wire || cable->unplugged) {
		close(fd);
		return;
	}
	wire->fds[CLIENT] = fd;
	wire->fds[SERVER] = connect_server(cable);
	if (wire->fds[SERVER] < 0) {
		close(fd);
		return;
	}
	wire->flows[CLIENT].begin = wire->flows[CLIENT].end = 0;
	wire->flows[SERVER].begin = wire->flows[SERVER].end = 0;
	wire->number = ++cable->wires_made;
	wire->held = false;
	wire->has_brought = false;
	wire->used = true;
}

/* Reads at one end and writes at the other what can be; false: it has ended. */
static bool carry(struct cable *cable, struct wire *wire, int to)
{
	struct flow *flow = &wire->flows[to];
	ssize_t n;

	if (flow->begin == flow->end) {
		n = recv(wire->fds[!to], flow->bytes, sizeof(flow->bytes),
			 MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		flow->begin = 0;
		flow->end = n > 0 ? (uint32_t)n : 0;
		for (ssize_t i = 0; to == CLIENT && i < n; i++)
			if (cable->garble_count > 0) {
				cable->garble_count--;
				flow->bytes[i] ^= 0xff;
			}
	}
	if (flow->begin == flow->end)
		return true;
	n = send(wire->fds[to], flow->bytes + flow->begin,
		 flow->end - flow->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		flow->begin += (uint32_t)n;
	if (n > 0 && to == CLIENT)
		wire->has_brought = true;
	return n > 0 || errno == EAGAIN;
}

static void wire_haunt(struct wire *wire, uint64_t due_ns)
{
	struct flow *flow = &wire->flows[SERVER];
	ssize_t n;

	memmove(flow->bytes, flow->bytes + flow->begin,
		flow->end - flow->begin);
	flow->end -= flow->begin;
	flow->begin = 0;
	while (flow->end < BUFFER_BYTES &&
	       (n = recv(wire->fds[CLIENT], flow->bytes + flow->end,
			 BUFFER_BYTES - flow->end, MSG_DONTWAIT)) > 0)
		flow->end += (uint32_t)n;
	close(wire->fds[CLIENT]);
	wire->is_ghost = true;
	wire->due_ns = due_ns;
}

/* Brings the server what is late; false: that was all. */
static bool carry_late(struct wire *wire)
{
	struct flow *flow = &wire->flows[SERVER];
	ssize_t n;

	if (rbx_now_ns() < wire->due_ns)
		return true;
	n = send(wire->fds[SERVER], flow->bytes + flow->begin,
		 flow->end - flow->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		flow->begin += (uint32_t)n;
	return flow->begin != flow->end && (n > 0 || errno == EAGAIN);
}

static bool carry_both(struct cable *cable, struct wire *wire)
{
	bool goes_on;

	if (wire->held)
		return true;
	if (wire->is_ghost)
		return carry_late(wire);
	goes_on = carry(cable, wire, SERVER) && carry(cable, wire, CLIENT);
	wire->held = wire->number >= cable->hold_from && wire->has_brought;
	return goes_on;
}

/* What to wait for: room for what is in hand, else new bytes. */
static short events_at(const struct wire *wire, int end)
{
	const struct flow *out = &wire->flows[end];
	const struct flow *in = &wire->flows[!end];

	return (short)((out->begin != out->end ? POLLOUT : 0) |
		       (in->begin == in->end ? POLLIN : 0));
}

static nfds_t gather(struct cable *cable, struct pollfd *fds)
{
	nfds_t count = 1;

	fds[0] = (struct pollfd){ .fd = cable->listener, .events = POLLIN };
	for (uint32_t i = 0; i < CABLE_WIRES_MAX && !cable->held; i++) {
		struct wire *wire = &cable->wires[i];

		if (!wire->used || wire->is_ghost || wire->held)
			continue;
		for (int end = 0; end < 2; end++)
			fds[count++] = (struct pollfd){
				.fd = wire->fds[end],
				.events = events_at(wire, end),
			};
	}
	return count;
}

static void *cable_run(void *arg)
{
	struct cable *cable = arg;
	struct pollfd fds[1 + 2 * CABLE_WIRES_MAX];

	pthread_mutex_lock(&cable->lock);
	while (!cable->stop) {
		nfds_t count = gather(cable, fds);

		pthread_mutex_unlock(&cable->lock);
		poll(fds, count, LOOK_MS);
		pthread_mutex_lock(&cable->lock);
		if (fds[0].revents)
			take_connection(cable);
		for (uint32_t i = 0; i < CABLE_WIRES_MAX && !cable->held; i++) {
			struct wire *wire = &cable->wires[i];

			if (wire->used && !carry_both(cable, wire))
				wire_end(wire);
		}
	}
	pthread_mutex_unlock(&cable->lock);
	return NULL;
}

struct cable *cable_lay(const char *server_address)
{
	struct cable *cable = calloc(1, sizeof(*cable));
	struct sockaddr_in here = { .sin_family = AF_INET };
	socklen_t length = sizeof(here);
	unsigned int port;

	assert_non_null(cable);
	cable->hold_from = UINT64_MAX;
	assert_int_equal(sscanf(server_address, "127.0.0.1:%u", &port), 1);
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cable->server = here;
	cable->server.sin_port = htons((uint16_t)port);
	cable->listener = socket(AF_INET,
				 SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(cable->listener, (struct sockaddr *)&here,
			      sizeof(here)),
			 0);
	assert_int_equal(listen(cable->listener, CABLE_WIRES_MAX), 0);
	assert_int_equal(getsockname(cable->listener, (struct sockaddr *)&here,
				     &length),
			 0);
	snprintf(cable->address, sizeof(cable->address), "127.0.0.1:%u",
		 ntohs(here.sin_port));
	pthread_mutex_init(&cable->lock, NULL);
	assert_int_equal(pthread_create(&cable->thread, NULL, cable_run, cable),
			 0);
	return cable;
}

void cable_remove(struct cable *cable)
{
	pthread_mutex_lock(&cable->lock);
	cable->stop = true;
	pthread_mutex_unlock(&cable->lock);
	pthread_join(cable->thread, NULL);
	cable_cut(cable);
	close(cable->listener);
	pthread_mutex_destroy(&cable->lock);
	free(cable);
}

const char *cable_address(const struct cable *cable)
{
	return cable->address;
}

void cable_cut(struct cable *cable)
{
	pthread_mutex_lock(&cable->lock);
	for (uint32_t i = 0; i < CABLE_WIRES_MAX; i++)
		if (cable->wires[i].used)
			wire_end(&cable->wires[i]);
	pthread_mutex_unlock(&cable->lock);
}

static struct wire *newest_locked(struct cable *cable)
{
	struct wire *newest = NULL;

	for (uint32_t i = 0; i < CABLE_WIRES_MAX; i++)
		if (cable->wires[i].used && !cable->wires[i].is_ghost &&
		    (!newest || cable->wires[i].number > newest->number))
			newest = &cable->wires[i];
	return newest;
}

void cable_cut_newest(struct cable *cable)
{
	struct wire *newest;

	pthread_mutex_lock(&cable->lock);
	newest = newest_locked(cable);
	if (newest)
		wire_end(newest);
	pthread_mutex_unlock(&cable->lock);
}

void cable_hold_newest(struct cable *cable)
{
	struct wire *newest;

	pthread_mutex_lock(&cable->lock);
	newest = newest_locked(cable);
	if (newest)
		newest->held = true;
	pthread_mutex_unlock(&cable->lock);
}

void cable_hold_those_to_come(struct cable *cable, uint32_t skip)
{
	pthread_mutex_lock(&cable->lock);
	cable->hold_from = cable->wires_made + 1 + skip;
	pthread_mutex_unlock(&cable->lock);
}

void cable_haunt(struct cable *cable, uint32_t delay_ms)
{
	uint64_t due_ns = rbx_now_ns() + delay_ms * 1000000ull;

	pthread_mutex_lock(&cable->lock);
	for (uint32_t i = 0; i < CABLE_WIRES_MAX; i++)
		if (cable->wires[i].used && !cable->wires[i].is_ghost)
			wire_haunt(&cable->wires[i], due_ns);
	pthread_mutex_unlock(&cable->lock);
}

void cable_hold(struct cable *cable, bool held)
{
	pthread_mutex_lock(&cable->lock);
	cable->held = held;
	pthread_mutex_unlock(&cable->lock);
}

void cable_garble(struct cable *cable, uint32_t count)
{
	pthread_mutex_lock(&cable->lock);
	cable->garble_count = count;
	pthread_mutex_unlock(&cable->lock);
}

void cable_unplug(struct cable *cable, bool unplugged)
{
	pthread_mutex_lock(&cable->lock);
	cable->unplugged = unplugged;
	pthread_mutex_unlock(&cable->lock);
}
