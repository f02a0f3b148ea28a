/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store_test.c - etcd as a store: compare and commit, leases, and users; on an endpoint that
 * is played, so that what is asked can be looked at.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool/store.h"
#include "tests/pool/etcd/fake_etcd.h"

static const struct rbx_store_ops *ops;
static struct fake_etcd *etcd;
static struct rbx_store *store;
static int stop_fd;

/* What the endpoint was asked last, and what it says. */
static struct fake_request last;
static const char *status, *answer;

static void script(struct fake_etcd *of, const struct fake_request *request)
{
	(void)of;
	last = *request;
	fake_answer(request, status, answer);
}

static void store_open(void)
{
	struct rbx_store_place place = {
		.endpoints = fake_etcd_address(etcd),
		.stop_fd = stop_fd,
	};
	char error[RBX_STORE_ERROR_BYTES] = "";

	if (ops->open(&place, &store, error))
		fail_msg("%s", error);
}

static int start(void **state)
{
	(void)state;
	status = "200 OK";
	answer = "{}";
	ops = &rbx_store_etcd_1;
	etcd = fake_etcd_start(script);
	stop_fd = eventfd(0, EFD_NONBLOCK);
	store_open();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	ops->close(store);
	fake_etcd_stop(etcd);
	close(stop_fd);
	return 0;
}

static void asked(const char *what)
{
	if (!strstr(last.body, what))
		fail_msg("%s has no %s", last.body, what);
}

static int visit(void *user, const struct rbx_store_entry *entry)
{
	snprintf(user, 64, "%.30s=%.30s@%lu", entry->key, entry->value, entry->revision);
	return 0;
}

/* k is "aw==", v is "dg==". */
static void put_compares_the_revision_and_commits(void **state)
{
	uint64_t revision;

	(void)state;
	answer = "{\"header\":{\"revision\":\"8\"},\"succeeded\":true}";
	assert_int_equal(ops->put(store, "k", "v", 1, 7, 0, &revision), 0);
	assert_int_equal(revision, 8);
	assert_string_equal(last.path, "/v3/kv/txn");
	asked("\"compare\":[{\"key\":\"aw==\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"7\"}]");
	asked("\"request_put\":{\"key\":\"aw==\",\"value\":\"dg==\",\"lease\":\"0\"}");
	assert_int_equal(ops->put(store, "k", "v", 1, RBX_STORE_ABSENT, 5, &revision), 0);
	asked("\"mod_revision\":\"0\"");
	asked("\"lease\":\"5\"");
	assert_int_equal(ops->put(store, "k", "v", 1, RBX_STORE_ANY, 0, &revision), 0);
	asked("\"compare\":[]");
	answer = "{\"header\":{\"revision\":\"8\"}}";
	assert_int_equal(ops->put(store, "k", "v", 1, 7, 0, &revision), -EEXIST);
}

static void write_that_compares_is_not_sent_twice(void **state)
{
	uint64_t revision;

	(void)state;
	answer = "nonsense";
	assert_int_equal(ops->put(store, "k", "v", 1, 7, 0, &revision), -EPROTO);
	status = "500 Internal Server Error";
	assert_int_equal(ops->put(store, "k", "v", 1, 7, 0, &revision), -EREMOTEIO);
	assert_int_equal(fake_etcd_count(etcd, "/v3/kv/txn"), 2);
}

static void key_or_value_that_is_too_long_is_not_sent(void **state)
{
	static char text[RBX_STORE_VALUE_BYTES_MAX + 2];
	uint64_t revision;

	(void)state;
	memset(text, 'k', sizeof(text) - 1);
	assert_int_equal(ops->put(store, "k", text, sizeof(text) - 1, 0, 0, &revision), -EINVAL);
	assert_int_equal(ops->put(store, text, "v", 1, 0, 0, &revision), -EINVAL);
	assert_int_equal(fake_etcd_count(etcd, "/v3/kv/txn"), 0);
}

static void remove_compares_and_tells_whether_there_was_a_key(void **state)
{
	(void)state;
	answer = "{\"header\":{\"revision\":\"9\"},\"succeeded\":true,"
		 "\"responses\":[{\"response_delete_range\":{\"deleted\":\"1\"}}]}";
	assert_int_equal(ops->remove(store, "k", 7), 0);
	asked("\"request_delete_range\":{\"key\":\"aw==\"}");
	answer = "{\"header\":{\"revision\":\"9\"},\"succeeded\":true,"
		 "\"responses\":[{\"response_delete_range\":{}}]}";
	assert_int_equal(ops->remove(store, "k", RBX_STORE_ANY), -ENOENT);
	answer = "{\"header\":{\"revision\":\"9\"}}";
	assert_int_equal(ops->remove(store, "k", 7), -EEXIST);
}

static void get_finds_the_key_or_tells_that_there_is_none(void **state)
{
	char *range = fake_range(9, "k=v", NULL), found[64];

	(void)state;
	answer = range;
	assert_int_equal(ops->get(store, "k", visit, found), 0);
	assert_string_equal(found, "k=v@9");
	answer = "{\"header\":{\"revision\":\"9\"}}";
	assert_int_equal(ops->get(store, "k", visit, found), -ENOENT);
	free(range);
}

static void lease_that_has_run_out_is_told(void **state)
{
	uint64_t lease;

	(void)state;
	answer = "{\"ID\":\"77\",\"TTL\":\"10\"}";
	assert_int_equal(ops->lease_grant(store, 10, &lease), 0);
	assert_int_equal(lease, 77);
	answer = "{\"result\":{\"ID\":\"77\",\"TTL\":\"10\"}}";
	assert_int_equal(ops->lease_keep(store, 77), 0);
	answer = "{\"result\":{\"ID\":\"77\"}}";
	assert_int_equal(ops->lease_keep(store, 77), -ENOENT);
	status = "404 Not Found";
	answer = "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}";
	assert_int_equal(ops->put(store, "k", "v", 1, RBX_STORE_ANY, 77, &lease), -ENOENT);
	answer = "{\"TTL\":\"10\"}";
	status = "200 OK";
	assert_int_equal(ops->lease_grant(store, 10, &lease), -EPROTO);
}

static void call_ends_at_once_when_it_is_told_to(void **state)
{
	uint64_t revision;

	(void)state;
	assert_int_equal(eventfd_write(stop_fd, 1), 0);
	assert_int_equal(ops->range(store, "k", 1, visit, NULL, &revision), -ECANCELED);
	assert_int_equal(eventfd_read(stop_fd, &revision), 0);
}

static void error_of_an_answer_names_the_endpoint(void **state)
{
	char at[64];
	uint64_t number;

	(void)state;
	snprintf(at, sizeof(at), "etcd at %s: ", fake_etcd_address(etcd));
	answer = "nonsense";
	assert_int_equal(ops->get(store, "k", visit, NULL), -EPROTO);
	assert_ptr_equal(strstr(store->error, at), store->error);
	assert_int_equal(ops->range(store, "k", 1, visit, NULL, &number), -EPROTO);
	assert_ptr_equal(strstr(store->error, at), store->error);
	assert_int_equal(ops->put(store, "k", "v", 1, 7, 0, &number), -EPROTO);
	assert_ptr_equal(strstr(store->error, at), store->error);
	assert_int_equal(ops->lease_grant(store, 10, &number), -EPROTO);
	assert_ptr_equal(strstr(store->error, at), store->error);
	assert_int_equal(ops->lease_keep(store, 77), -EPROTO);
	assert_ptr_equal(strstr(store->error, at), store->error);
	assert_null(strstr(store->error + 1, "etcd at"));
}

/* ---- A watch of which there is no end ----------------------------------------------------*/

static atomic_bool flood_is_over;

static void flood_script(struct fake_etcd *of, const struct fake_request *request)
{
	char *line = fake_event(9, "k", "v");

	(void)of;
	fake_stream(request);
	while (!flood_is_over)
		fake_say(request, "%s%s%s%s", line, line, line, line);
	free(line);
}

struct flood {
	uint32_t visits_count;
	uint32_t stop_at; /* the visit at which the watch is to end */
};

static int flood_visit(void *user, const struct rbx_store_entry *entry)
{
	struct flood *flood = user;

	(void)entry;
	if (++flood->visits_count == flood->stop_at)
		assert_int_equal(eventfd_write(stop_fd, 1), 0);
	return 0;
}

static void watch_that_is_flooded_lets_others_go_on_and_ends(void **state)
{
	struct flood flood = { .stop_at = 0 };

	(void)state;
	stop(NULL);
	stop_fd = eventfd(0, EFD_NONBLOCK);
	flood_is_over = false;
	etcd = fake_etcd_start(flood_script);
	store_open();
	assert_int_equal(ops->watch(store, "k", 1), 0);
	while (flood.visits_count < 3000) /* of which each call takes some */
		assert_int_equal(ops->watch_next(store, 10000, flood_visit, &flood), 0);
	flood.stop_at = flood.visits_count + 10;
	assert_int_equal(ops->watch_next(store, 10000, flood_visit, &flood), -ECANCELED);
	assert_int_equal(flood.visits_count, flood.stop_at);
	flood_is_over = true;
}

/* ---- Users ------------------------------------------------------------------------------*/

static int tokens_count;

/* The first token has run out at its second use. */
static void user_script(struct fake_etcd *of, const struct fake_request *request)
{
	char token[64];

	(void)of;
	if (!strcmp(request->path, "/v3/auth/authenticate")) {
		assert_non_null(strstr(request->body, "{\"name\":\"me\",\"password\":\"pass:word\"}"));
		snprintf(token, sizeof(token), "{\"token\":\"t%d\"}", ++tokens_count);
		fake_answer(request, "200 OK", token);
	} else if (!strcmp(request->token, tokens_count == 1 ? "t1" : "t2") &&
		   fake_etcd_count(of, "/v3/kv/range") != 2) {
		fake_answer(request, "200 OK", "{\"header\":{\"revision\":\"9\"}}");
	} else {
		fake_answer(request, "401 Unauthorized",
			    "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}");
	}
}

static char user_file[] = "/tmp/rdmabox-user.XXXXXX";

static void user_file_write(const char *text, mode_t mode)
{
	int fd;

	strcpy(strchr(user_file, '.'), ".XXXXXX");
	fd = mkstemp(user_file);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	setenv("RDMABOX_ETCD_USER_FILE", user_file, 1);
}

static void token_is_got_by_the_password_and_anew_when_it_has_run_out(void **state)
{
	uint64_t revision;

	(void)state;
	stop(NULL);
	tokens_count = 0;
	stop_fd = eventfd(0, EFD_NONBLOCK);
	etcd = fake_etcd_start(user_script);
	user_file_write("me:pass:word\n", 0600);
	store_open();
	assert_int_equal(ops->range(store, "k", 1, visit, NULL, &revision), 0);
	assert_int_equal(ops->range(store, "k", 1, visit, NULL, &revision), 0);
	assert_int_equal(tokens_count, 2);
	unlink(user_file);
	unsetenv("RDMABOX_ETCD_USER_FILE");
}

static int open_error(const char *endpoints, bool is_encrypted, char *error)
{
	struct rbx_store_place place = {
		.endpoints = endpoints,
		.is_encrypted = is_encrypted,
		.stop_fd = stop_fd,
	};
	struct rbx_store *opened;
	int err = ops->open(&place, &opened, error);

	if (!err)
		ops->close(opened);
	unlink(user_file);
	return err;
}

static void password_goes_nowhere_without_tls_but_to_this_machine(void **state)
{
	char error[RBX_STORE_ERROR_BYTES] = "";

	(void)state;
	user_file_write("me:word", 0600);
	assert_int_equal(open_error("10.0.0.1:2379", false, error), -EPERM);
	assert_non_null(strstr(error, "etcds://"));
	user_file_write("me:word", 0600);
	assert_int_equal(open_error("127.0.0.1:1,10.0.0.1:2379", false, error), -EPERM);
	user_file_write("me:word", 0600);
	assert_int_equal(open_error("127.0.0.1.evil.example:1", false, error), -EPERM);
	user_file_write("me:word", 0600);
	assert_int_equal(open_error("127.0.0.1:1,localhost:2,[::1]:3", false, error), 0);
	user_file_write("me:word", 0600);
	assert_int_equal(open_error("10.0.0.1:2379", true, error), 0);
	unsetenv("RDMABOX_ETCD_USER_FILE");
}

static void files_of_secrets_are_checked(void **state)
{
	char error[RBX_STORE_ERROR_BYTES] = "";

	(void)state;
	user_file_write("me:word", 0604);
	assert_int_equal(open_error("127.0.0.1:1", false, error), -EACCES);
	assert_non_null(strstr(error, "others may read or write it"));
	user_file_write("me", 0600);
	assert_int_equal(open_error("127.0.0.1:1", false, error), -EINVAL);
	strcpy(strchr(user_file, '.'), ".XXXXXX");
	close(mkstemp(user_file));
	unlink(user_file);
	assert_int_equal(mkfifo(user_file, 0600), 0); /* that nobody writes to */
	setenv("RDMABOX_ETCD_USER_FILE", user_file, 1);
	assert_int_equal(open_error("127.0.0.1:1", false, error), -EINVAL);
	assert_non_null(strstr(error, "it is not a file"));
	if (!geteuid()) {
		user_file_write("me:word", 0660);
		assert_int_equal(chown(user_file, 65534, 65534), 0);
		assert_int_equal(open_error("127.0.0.1:1", false, error), -EACCES);
		assert_non_null(strstr(error, "belongs to another user"));
	}
	setenv("RDMABOX_ETCD_USER_FILE", "/dev/null/nobody", 1);
	assert_int_equal(open_error("127.0.0.1:1", false, error), -ENOTDIR);
	unsetenv("RDMABOX_ETCD_USER_FILE");
	setenv("RDMABOX_ETCD_CA_FILE", "/dev/null/nobody", 1);
	assert_int_equal(open_error("127.0.0.1:1", true, error), -ENOTDIR);
	assert_int_equal(open_error("127.0.0.1:1", false, error), 0);
	unsetenv("RDMABOX_ETCD_CA_FILE");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(put_compares_the_revision_and_commits),
		TEST(write_that_compares_is_not_sent_twice),
		TEST(key_or_value_that_is_too_long_is_not_sent),
		TEST(remove_compares_and_tells_whether_there_was_a_key),
		TEST(get_finds_the_key_or_tells_that_there_is_none),
		TEST(lease_that_has_run_out_is_told),
		TEST(call_ends_at_once_when_it_is_told_to),
		TEST(error_of_an_answer_names_the_endpoint),
		TEST(watch_that_is_flooded_lets_others_go_on_and_ends),
		TEST(token_is_got_by_the_password_and_anew_when_it_has_run_out),
		TEST(password_goes_nowhere_without_tls_but_to_this_machine),
		TEST(files_of_secrets_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
