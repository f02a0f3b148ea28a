/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tls_devices.h - soft devices over TCP of which a test chooses key and use of TLS. */
#ifndef RBX_TESTS_TLS_DEVICES_H
#define RBX_TESTS_TLS_DEVICES_H

#include <string.h>

#include "tests/fabric/endpoint.h"

static inline struct rbx_tls_key tls_key(uint8_t number)
{
	struct rbx_tls_key key = { .identity = "test:0", .bytes = { number } };

	key.identity[5] = (char)('0' + number);
	return key;
}

static inline struct rbx_device *tls_device(enum rbx_tls_use use, uint8_t key_number)
{
	const struct rbx_tls_key key = tls_key(key_number);
	const struct rbx_device_options options = {
		.gid_index = -1,
		.tls = use,
		.tls_key = &key,
	};
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_device *device;

	if (rbx_fabric_soft.open(&options, &device, error))
		fail_msg("open: %s", error);
	return device;
}

/* A device that listens, and one that connects. */
struct tls_world {
	const struct rbx_fabric_ops *ops;
	struct rbx_device *server, *client;
	struct rbx_cq *server_cq, *client_cq;
	struct rbx_listener *listener;
};

static inline void tls_world_open(struct tls_world *world, struct rbx_device *server,
				  struct rbx_device *client)
{
	*world = (struct tls_world){ &rbx_fabric_soft, server, client, NULL, NULL, NULL };
	assert_int_equal(world->ops->create_cq(server, 64, &world->server_cq, NULL), 0);
	assert_int_equal(world->ops->create_cq(client, 64, &world->client_cq, NULL), 0);
	assert_int_equal(world->ops->listen(server, "127.0.0.1:0", &world->listener, NULL), 0);
}

static inline void tls_world_close(struct tls_world *world)
{
	world->ops->close_listener(world->listener);
	world->ops->destroy_cq(world->server_cq);
	world->ops->destroy_cq(world->client_cq);
	world->ops->close(world->server);
	world->ops->close(world->client);
}

static inline struct rbx_qp_init tls_qp_init(struct rbx_cq *cq, bool served)
{
	return (struct rbx_qp_init){
		.send_cq = cq,
		.recv_cq = cq,
		.send_depth_count = 64,
		.recv_depth_count = 16,
		.max_sge = 4,
		.served = served,
	};
}

/* Connects to an address; returns what connect() does, and its text. */
static inline int tls_connect(struct tls_world *world, const char *address,
			      uint32_t timeout_ms, struct rbx_qp **qp, char *error)
{
	const struct rbx_qp_init init = tls_qp_init(world->client_cq, false);
	struct rbx_connect_init connect = { .address = address, .timeout_ms = timeout_ms };

	error[0] = '\0';
	return world->ops->connect(world->client, &init, &connect, qp, error);
}

#endif
