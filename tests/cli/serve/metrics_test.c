/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * metrics_test.c - metrics and status of a server whose device does not tell what clients
 * read and write, as a NIC does not: nothing is said of it, not even zero.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/serve/metrics.h"
#include "cli/serve/status.h"
#include "server/state.h"
#include "tests/lib/tenant.h"

static struct rbx_fabric_ops blind_ops;

static struct rbx_server *blind_server(void)
{
	struct rbx_server *server = tenant_server();

	pthread_mutex_lock(&server->lock);
	blind_ops = *server->fabric.ops;
	blind_ops.get_traffic = NULL;
	server->fabric.ops = &blind_ops;
	pthread_mutex_unlock(&server->lock);
	return server;
}

static char *metrics_text(struct rbx_server *server)
{
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	assert_non_null(file);
	metrics_print(file, server);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void metrics_of_traffic_are_there_if_the_device_tells(void **state)
{
	struct rbx_server *server = tenant_server();
	char *text = metrics_text(server);

	(void)state;
	if (server->fabric.ops->get_traffic)
		assert_non_null(strstr(text, "rdmabox_server_reads_total 0\n"));
	free(text);
	rbx_server_stop(server);
}

static void metrics_of_traffic_are_left_out_if_the_device_does_not_tell(void **state)
{
	struct rbx_server *server = blind_server();
	char *text = metrics_text(server);

	(void)state;
	assert_non_null(strstr(text, "rdmabox_server_clients 0\n"));
	assert_null(strstr(text, "reads_total"));
	assert_null(strstr(text, "read_bytes_total"));
	assert_null(strstr(text, "writes_total"));
	assert_null(strstr(text, "written_bytes_total"));
	free(text);
	rbx_server_stop(server);
}

static void status_of_traffic_is_null_if_the_device_does_not_tell(void **state)
{
	struct rbx_server *server = blind_server();
	json_t *json = status_json(server);

	(void)state;
	assert_non_null(json);
	assert_true(json_is_null(json_object_get(json, "traffic")));
	assert_true(json_is_array(json_object_get(json, "clients_list")));
	json_decref(json);
	rbx_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_of_traffic_are_there_if_the_device_tells),
		cmocka_unit_test(metrics_of_traffic_are_left_out_if_the_device_does_not_tell),
		cmocka_unit_test(status_of_traffic_is_null_if_the_device_does_not_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
