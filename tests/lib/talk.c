/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* talk.c - see talk.h. */
#include "tests/lib/talk.h"

#include <string.h>
#include <unistd.h>

void host_ended(int status, void *user)
{
	struct host *host = user;

	if (status) {
		host->failed_status = status;
		RBX_FETCH_ADD(&host->failed_count, 1);
	}
	RBX_FETCH_ADD(&host->ended_count, 1);
}

static void host_heard(struct rbx_server *server, uint64_t client,
		       const void *data, size_t length, void *user)
{
	struct host *host = user;
	uint64_t number = 0;

	memcpy(&number, data, RBX_MIN(length, sizeof(number)));
	RBX_STORE_RELEASE(&host->client, client);
	if (number != RBX_FETCH_ADD(&host->heard_count, 1) + 1)
		RBX_FETCH_ADD(&host->wrong_count, 1);
	if (host->waits)
		sem_wait(&host->go_on);
	if (host->echoes && rbx_server_message_submit(server, client, data,
						      length, host_ended,
						      host)) {
		print_message("no echo: %s\n", rbx_last_error());
		RBX_FETCH_ADD(&host->wrong_count, 1);
	}
}

void host_start(struct host *host, bool listens)
{
	struct rbx_server_options options;

	*host = (struct host){ .echoes = true };
	sem_init(&host->go_on, 0, 0);
	tenant_server_options(&options);
	options.message = listens ? host_heard : NULL;
	options.user = host;
	if (rbx_server_start(&host->server, &options))
		fail_msg("%s", rbx_last_error());
}

void guest_ended(int status, void *user)
{
	struct guest *guest = user;

	if (status) {
		guest->failed_status = status;
		RBX_FETCH_ADD(&guest->failed_count, 1);
	}
	RBX_FETCH_ADD(&guest->ended_count, 1);
}

void guest_heard(struct rbx_peer *peer, const void *data, size_t length,
		 void *user)
{
	struct guest *guest = user;
	uint64_t number = 0;

	memcpy(&number, data, RBX_MIN(length, sizeof(number)));
	if (number != guest->heard_count + 1)
		RBX_FETCH_ADD(&guest->wrong_count, 1);
	guest->nested_status = rbx_message_send(peer, "?", 1);
	RBX_FETCH_ADD(&guest->heard_count, 1);
}

void guest_open(struct guest *guest, const char *address, bool listens)
{
	*guest = (struct guest){ 0 };
	guest->ctx = tenant_context("peer_timeout_ms=2000");
	if (rbx_peer_connect(guest->ctx, &guest->peer, address))
		fail_msg("%s", rbx_last_error());
	if (listens)
		assert_int_equal(rbx_peer_on_message(guest->peer, guest_heard,
						     guest),
				 0);
}

void guest_close(struct guest *guest)
{
	rbx_peer_close(guest->peer);
	rbx_close(guest->ctx);
}

void wait_count(const uint32_t *counter, uint32_t count)
{
	tenant_wait(NULL, counter, count, false);
}

void wait_heard(const uint64_t *counter, uint64_t count)
{
	int waited_ms;

	for (waited_ms = 0; RBX_LOAD_ACQUIRE(counter) < count; waited_ms++) {
		if (waited_ms > TENANT_WAIT_MS)
			fail_msg("%llu of %llu were heard",
				 (unsigned long long)*counter,
				 (unsigned long long)count);
		usleep(1000);
	}
}
