/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - makes a connection to a listener, within the caller's time.
 *
 * Each address that the name resolves to is tried. If the device maps memory and the address
 * is of this host, the local socket beside the listener comes first: that of the address,
 * then that of a listener on every address. It is used only if it belongs to our user.
 * Otherwise, or if there is none, TCP is used.
 *
 * Over TCP, TLS may come next; whether it does is decided here and by the acceptor alike, and
 * no answer changes it. Then one message goes each way (frame.h). The other side's message is
 * checked before a qp is made; until then there is only a socket.
 */
#include "connect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "device.h"
#include "queue_pair.h"
#include "fabric/loopback.h"

/* Waits until the socket is readable or writable. 0 or -ETIMEDOUT. */
static int socket_wait(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd poller = { .fd = fd, .events = events };
	uint64_t now_ns;
	int rc;

	do {
		now_ns = soft_now_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		rc = poll(&poller, 1, (int)((deadline_ns - now_ns) / 1000000) + 1);
	} while (rc == 0 || (rc < 0 && errno == EINTR));
	return rc < 0 ? -errno : 0;
}

/* A connected socket, or -errno. */
static int socket_connect(const struct sockaddr *address, socklen_t length,
			  uint64_t deadline_ns)
{
	socklen_t error_length = sizeof(int);
	int fd, err = 0;

	fd = socket(address->sa_family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, address, length)) {
		if (errno != EINPROGRESS) {
			err = -errno;
			goto out_close;
		}
		err = socket_wait(fd, POLLOUT, deadline_ns);
		if (!err && (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err,
					&error_length) || err))
			err = -err;
	}
	if (!err)
		return fd;
out_close:
	close(fd);
	return err;
}

static int local_connect(const struct sockaddr *address, bool any,
			 uint64_t deadline_ns)
{
	struct sockaddr_un local;
	socklen_t length = soft_address_local(address, any, &local);
	int fd;

	fd = socket_connect((struct sockaddr *)&local, length, deadline_ns);
	if (fd >= 0 && !soft_socket_is_our_users(fd)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static int address_connect(struct soft_device *device,
			   const struct addrinfo *info, struct soft_peer *peer,
			   uint64_t deadline_ns)
{
	char name[RBX_NAME_MAX];
	int fd = -1;

	soft_address_name(info->ai_addr, name);
	if (device->same_host_mapping && soft_address_is_own(info->ai_addr)) {
		fd = local_connect(info->ai_addr, false, deadline_ns);
		if (fd < 0)
			fd = local_connect(info->ai_addr, true, deadline_ns);
	}
	peer->mapped = fd >= 0;
	if (fd < 0)
		fd = socket_connect(info->ai_addr, info->ai_addrlen,
				    deadline_ns);
	snprintf(peer->name, sizeof(peer->name), "%.100s%s", name,
		 peer->mapped ? " (same host)" : "");
	return fd;
}

/* Waits for a handshake message and decodes it. */
static int hello_hear(const struct soft_peer *peer, struct soft_hello *answer,
		      uint64_t deadline_ns, const char **wrong)
{
	uint8_t bytes[SOFT_HELLO_MAX_BYTES];
	size_t got_bytes = 0;
	int err;

	do {
		err = socket_wait(peer->fd, POLLIN, deadline_ns);
		if (!err)
			err = soft_hello_receive(peer->fd, peer->tls, bytes, &got_bytes);
	} while (err == -EAGAIN);
	if (err)
		return err;
	*wrong = soft_hello_decode(bytes, answer);
	if (!*wrong && answer->version != SOFT_VERSION)
		*wrong = "speaks another version of the protocol";
	if (!*wrong && answer->type == SOFT_HELLO)
		*wrong = "answers a hello with a hello";
	if (!*wrong && answer->wants_tls)
		*wrong = "it wants TLS: use integrity=tls (--integrity tls), and its secret";
	if (!*wrong && answer->wants_no_tls)
		*wrong = "it does not use TLS: start it with integrity=tls (--integrity tls) and "
			 "the secret, or use integrity=mac here";
	return *wrong ? -EPROTO : 0;
}

/* The first byte of the answer is there: it is not of TLS, but one of ours in clear text. */
static bool answer_is_plain(int fd)
{
	uint8_t first;

	return recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 &&
	       first == (SOFT_MAGIC & 0xff);
}

/* Makes peer->tls, which the caller frees. */
static int tls_connect(struct soft_device *device, struct soft_peer *peer,
		       uint64_t deadline_ns, const char **wrong)
{
	struct soft_hello refusal;
	int err;

	peer->tls = soft_tls_open(device->tls_keys, peer->fd, false);
	if (!peer->tls)
		return -ENOMEM;
	while ((err = soft_tls_handshake(peer->tls)) == -EAGAIN) {
		err = socket_wait(peer->fd, POLLIN, deadline_ns);
		if (err)
			return err;
		if (!answer_is_plain(peer->fd))
			continue;
		soft_tls_free(peer->tls);
		peer->tls = NULL;
		err = hello_hear(peer, &refusal, deadline_ns, wrong);
		if (!err) /* an offer to do without TLS is not taken */
			*wrong = "it does not use TLS, and accepts all the same";
		return err ? err : -EPROTO;
	}
	if (err == -EACCES)
		*wrong = "it does not have the secret of this side (TLS)";
	if (err == -EPROTO)
		*wrong = "it is no RDMAbox server, or does not use TLS";
	return err;
}

/* Sends the hello and waits for the answer. */
static int hello_exchange(const struct rbx_qp_init *init,
			  const struct rbx_connect_init *connect,
			  struct soft_peer *peer, struct soft_hello *answer,
			  uint64_t deadline_ns, const char **wrong)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.private_bytes = (uint8_t)connect->private_data_bytes,
		.send_depth_count = init->send_depth_count,
		.shares_receives = init->srq,
	};
	int err;

	if (connect->private_data_bytes)
		memcpy(hello.private_data, connect->private_data,
		       connect->private_data_bytes);
	err = soft_hello_send(peer->fd, peer->tls, &hello);
	return err ? err : hello_hear(peer, answer, deadline_ns, wrong);
}

static void reply_keep(struct rbx_connect_init *connect,
		       const struct soft_hello *answer)
{
	size_t bytes = answer->private_bytes;

	if (bytes > connect->reply_data_max_bytes)
		bytes = connect->reply_data_max_bytes;
	if (bytes)
		memcpy(connect->reply_data, answer->private_data, bytes);
	connect->reply_data_bytes = bytes;
}

/* A text has no room for the interface of a link-local address. */
static void resolved_keep(const struct sockaddr *address, char *resolved)
{
	if (!resolved)
		return;
	*resolved = '\0';
	if (address->sa_family != AF_INET6 ||
	    !((const struct sockaddr_in6 *)address)->sin6_scope_id)
		soft_address_name(address, resolved);
}

static bool is_loopback_only(const struct addrinfo *list)
{
	while (list && rbx_sockaddr_is_loopback(list->ai_addr))
		list = list->ai_next;
	return !list;
}

static int peer_connect(struct soft_device *device,
			const struct rbx_connect_init *connect,
			struct soft_peer *peer, uint64_t deadline_ns,
			char *error)
{
	const char *address = connect->address;
	struct addrinfo *list, *info;
	int err, fd = -EADDRNOTAVAIL;

	err = soft_address_resolve(address, false, &list, error);
	if (err)
		return err;
	if (connect->loopback_only && !is_loopback_only(list)) {
		freeaddrinfo(list);
		soft_explain(error, "%.100s is another machine", address);
		return -EREMOTE;
	}
	for (info = list; info; info = info->ai_next) {
		fd = address_connect(device, info, peer, deadline_ns);
		if (fd >= 0) {
			resolved_keep(info->ai_addr, connect->resolved);
			break;
		}
	}
	freeaddrinfo(list);
	if (fd < 0) {
		soft_explain(error, "cannot connect to %.100s: %s; is a server "
			     "running there?", address, strerror(-fd));
		return fd;
	}
	peer->fd = fd;
	return 0;
}

int soft_connect(struct rbx_device *base, const struct rbx_qp_init *init,
		 struct rbx_connect_init *connect, struct rbx_qp **out,
		 char *error)
{
	struct soft_device *device = soft_device_of(base);
	uint64_t deadline_ns = soft_now_ns() + connect->timeout_ms * 1000000ull;
	struct soft_peer peer = { .fd = -1 };
	struct soft_hello answer = { 0 };
	const char *wrong = NULL;
	struct soft_qp *qp;
	int err;

	err = soft_qp_init_check(init, error);
	if (!err && connect->private_data_bytes > RBX_CONNECT_DATA_MAX)
		err = -EINVAL;
	if (!err)
		err = peer_connect(device, connect, &peer, deadline_ns, error);
	if (err)
		return err;
	soft_socket_tune(peer.fd);
	if (!peer.mapped && soft_wants_tls(device, peer.fd, false))
		err = tls_connect(device, &peer, deadline_ns, &wrong);
	if (!err)
		err = hello_exchange(init, connect, &peer, &answer, deadline_ns,
				     &wrong);
	if (!err)
		reply_keep(connect, &answer);
	if (!err && answer.type == SOFT_REJECT)
		wrong = "refused the connection";
	if (err == -ECONNRESET)
		wrong = "the connection was closed without an answer: it is ending, too many "
			"clients ask at once, or it is not a server";
	if (wrong && err != -EPROTO && err != -EACCES)
		err = -EBUSY; /* see core/reject.h: something listens there */
	if (err) {
		soft_explain(error, "cannot connect to %s: %s", peer.name,
			     wrong ? wrong : strerror(-err));
		goto out_close;
	}
	peer.send_depth_count = answer.send_depth_count;
	peer.shares_receives = answer.shares_receives;
	err = soft_qp_create(device, init, &peer, &qp, error);
	if (err)
		goto out_close;
	*out = &qp->qp;
	return 0;

out_close:
	soft_tls_free(peer.tls);
	close(peer.fd);
	return err;
}
