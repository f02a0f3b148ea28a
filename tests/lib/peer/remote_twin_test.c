/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_twin_test.c - a server takes memory back and lends it to the same program
 * anew, before that has noticed: what goes to the old loan never comes into the new one.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "core/port.h"
#include "lib/clock.h"
#include "server/state.h"

#define HOLD_US 300000

static uint8_t page[4096];

/* The server has one slab, and the tenant has borrowed it. */
static void open_tenant(struct tenant *tenant)
{
	struct rbx_server_options options;

	tenant_server_options(&options);
	options.memory_bytes = TENANT_SLAB_BYTES;
	assert_int_equal(rbx_server_start(&tenant->server, &options), 0);
	tenant->ctx = tenant_context("");
	assert_int_equal(rbx_peer_connect(tenant->ctx, &tenant->peer,
					  rbx_server_address(tenant->server)),
			 0);
	assert_int_equal(rbx_borrow(tenant->peer, &tenant->remote,
				    TENANT_SLAB_BYTES),
			 0);
}

/* As a server does that is short of memory; the grace is over at once. */
static void take_back(struct rbx_server *server)
{
	pthread_mutex_lock(&server->lock);
	assert_int_equal(rbx_lender_shrink(server->lender, 1, rbx_now_ns(), 1),
			 1);
	pthread_mutex_unlock(&server->lock);
}

/* Refused until it has been taken back. */
static struct rbx_remote *borrow_anew(struct rbx_peer *peer)
{
	struct rbx_remote *remote;
	int err;

	while ((err = rbx_borrow(peer, &remote, TENANT_SLAB_BYTES)) == -ENOSPC)
		usleep(1000);
	assert_int_equal(err, 0);
	return remote;
}

static struct rbx_request page_write(void)
{
	return (struct rbx_request){
		.op = RBX_WRITE,
		.length_bytes = sizeof(page),
		.buf = page,
	};
}

static void loan_that_was_lent_anew_takes_no_requests(void **state)
{
	struct rbx_request request = page_write(), *one = &request;
	struct rbx_remote *older;
	struct tenant tenant;

	(void)state;
	open_tenant(&tenant);
	take_back(tenant.server);
	older = tenant.remote;
	tenant.remote = borrow_anew(tenant.peer);
	assert_int_equal(rbx_remote_submit(older, &one, 1), -EACCES);
	assert_int_equal(rbx_remote_submit(older, &one, 1), -EACCES);
	/* It is free, and the new loan takes it. */
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, page, sizeof(page),
					 0),
			 0);
	assert_int_equal(rbx_return(older), 0);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, page, sizeof(page),
					 0),
			 0);
	tenant_close(&tenant);
}

struct holder {
	struct tenant *tenant;
	struct rbx_request request;
	uint32_t is_under_way; /* atomic */
	uint32_t was_unplugged; /* atomic */
	uint32_t has_ended; /* atomic */
};

static void ended(struct rbx_request *request)
{
	struct holder *holder = request->user;

	RBX_STORE_RELEASE(&holder->has_ended, 1);
}

/* A request is under way for a while: a plug holds it back. */
static void *hold(void *argument)
{
	struct holder *holder = argument;
	struct rbx_request *one = &holder->request;
	int err;

	rbx_plug(holder->tenant->ctx);
	err = rbx_remote_submit(holder->tenant->remote, &one, 1);
	RBX_STORE_RELEASE(&holder->is_under_way, 1);
	usleep(HOLD_US);
	RBX_STORE_RELEASE(&holder->was_unplugged, 1);
	rbx_unplug(holder->tenant->ctx);
	return err ? holder : NULL;
}

static void loan_is_not_used_while_its_twin_has_requests_under_way(void **state)
{
	struct holder holder = { .request = page_write() };
	struct rbx_remote *older;
	struct tenant tenant;
	pthread_t thread;
	void *result;

	(void)state;
	open_tenant(&tenant);
	holder.tenant = &tenant;
	holder.request.complete = ended;
	holder.request.user = &holder;
	assert_int_equal(pthread_create(&thread, NULL, hold, &holder), 0);
	tenant_wait(tenant.ctx, &holder.is_under_way, 1, false);
	take_back(tenant.server);
	older = tenant.remote;
	tenant.remote = borrow_anew(tenant.peer);
	assert_int_equal(RBX_LOAD_ACQUIRE(&holder.was_unplugged), 1);
	tenant_wait(tenant.ctx, &holder.has_ended, 1, false);
	assert_int_equal(holder.request.status, -EACCES);
	pthread_join(thread, &result);
	assert_null(result);
	assert_int_equal(rbx_return(older), 0);
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loan_that_was_lent_anew_takes_no_requests),
		cmocka_unit_test(loan_is_not_used_while_its_twin_has_requests_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
