/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * credentials_test.c - a server with a secret for each client: who gets in, what a reload
 * changes, and whose quota it is.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/state.h"
#include "tests/server/raw_client.h"

#define SECRET "correct horse battery staple"
#define OTHER "staple battery horse correct"
#define THIRD "battery correct staple horse"

static void start(struct world *world, const char *lines)
{
	world_options(world);
	strcpy(world->options.secrets_file, world_secrets_file(lines));
	world_start(world);
}

static int reload(struct world *world, const char *lines)
{
	world_secrets_file(lines);
	return rbx_server_reload(world->server, &world->options);
}

/* RBX_REASON_NONE, or the reason against it. */
static uint32_t answer_to(struct world *world, const char *credential, const char *secret)
{
	struct rbx_wire_message answer;
	struct raw_client raw = { 0 };

	raw_client_arrive(&raw, world);
	raw_client_prove_as(&raw, credential, secret);
	assert_true(raw_client_hear(&raw, &answer));
	assert_int_equal(answer.type, answer.status ? RBX_WIRE_ERROR : RBX_WIRE_WELCOME);
	raw_client_leave(&raw);
	return answer.status;
}

static void lets_in(struct world *world, const char *credential, const char *secret)
{
	assert_int_equal(answer_to(world, credential, secret), RBX_REASON_NONE);
}

/* After a challenge, whatever the name is. */
static void refuses(struct world *world, const char *credential, const char *secret)
{
	assert_int_equal(answer_to(world, credential, secret), RBX_REASON_WRONG_SECRET);
}

/* ---- Who gets in -----------------------------------------------------------*/

static void name_and_secret_let_in_together(void **state)
{
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\nother:" OTHER "\n");
	lets_in(&world, "one", SECRET);
	lets_in(&world, "other", OTHER);
	refuses(&world, "one", OTHER);
	refuses(&world, "other", SECRET);
	refuses(&world, "unknown", SECRET);
	refuses(&world, "one2", SECRET);
	refuses(&world, "on", SECRET);
	refuses(&world, "", SECRET);
	refuses(&world, "", "");
	assert_int_equal(world_stats(&world).refused_auth, 7);
	world_stop(&world);
}

/* What stands in for a secret that there is not is not the empty one, nor does its proof count. */
static void decoy_proves_nothing(void **state)
{
	char decoy[sizeof(struct rbx_key) + 1] = "";
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\n");
	refuses(&world, "unknown", "");
	refuses(&world, "one", "");
	/* No byte of it may be zero, for it is passed as a text here. */
	memset(&world.server->credentials.decoy, 'd', sizeof(struct rbx_key));
	memcpy(decoy, &world.server->credentials.decoy, sizeof(struct rbx_key));
	refuses(&world, "unknown", decoy);
	refuses(&world, "one", decoy);
	world_stop(&world);
}

static void secret_without_a_name_may_be_given_too(void **state)
{
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file, world_secret_file(THIRD "\n", 0600));
	strcpy(world.options.secrets_file, world_secrets_file("one:" SECRET "\n"));
	world_start(&world);
	lets_in(&world, "", THIRD);
	lets_in(&world, "one", SECRET);
	refuses(&world, "", SECRET);
	refuses(&world, "one", THIRD);
	world_stop(&world);
}

static void old_and_new_secret_let_in(void **state)
{
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\nalone:" THIRD "\none:" OTHER "\n");
	lets_in(&world, "one", SECRET);
	lets_in(&world, "one", OTHER);
	refuses(&world, "one", THIRD);
	refuses(&world, "alone", SECRET);
	world_stop(&world);
}

static void secret_is_required(void **state)
{
	struct rbx_wire_message hello = { .type = RBX_WIRE_HELLO };
	struct raw_client raw = { 0 };
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\n");
	raw_client_arrive(&raw, &world);
	raw_client_send(&raw, &hello);
	raw_client_is_refused(&raw, RBX_REASON_SECRET_REQUIRED);
	raw_client_leave(&raw);
	world_stop(&world);
}

static void error_names_the_credential(void **state)
{
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\n");
	assert_null(world_session_as(&world, "one", OTHER));
	assert_non_null(strstr(rbx_last_error(), "the secret of credential one is wrong"));
	assert_null(world_session_as(&world, "unknown", SECRET));
	assert_non_null(strstr(rbx_last_error(), "the secret of credential unknown is wrong"));
	world_stop(&world);
}

static void clients_are_listed_with_their_credential(void **state)
{
	struct rbx_server_client clients[1];
	struct rbx_session *session;
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\n");
	session = world_session_as(&world, "one", SECRET);
	assert_int_equal(rbx_server_clients_get(world.server, clients, 1), 1);
	assert_string_equal(clients[0].credential, "one");
	assert_null(strchr(clients[0].address, '('));
	rbx_session_close(session);
	world_stop(&world);
}

/* ---- Reloads ---------------------------------------------------------------*/

static void reload_takes_credentials_away_and_brings_others(void **state)
{
	struct world world;

	(void)state;
	start(&world, "gone:" SECRET "\nchanged:" SECRET "\nkept:" SECRET "\n");
	assert_int_equal(reload(&world, "changed:" OTHER "\nkept:" SECRET "\nnew:" THIRD "\n"), 0);
	refuses(&world, "gone", SECRET);
	refuses(&world, "changed", SECRET);
	lets_in(&world, "changed", OTHER);
	lets_in(&world, "kept", SECRET);
	lets_in(&world, "new", THIRD);
	world_stop(&world);
}

static void session_resumes_after_its_credential_is_gone(void **state)
{
	struct raw_client raw = { 0 }, again = { 0 };
	struct world world;

	(void)state;
	start(&world, "gone:" SECRET "\nkept:" SECRET "\n");
	raw_client_arrive(&raw, &world);
	raw_client_prove_as(&raw, "gone", SECRET);
	assert_true(raw_client_hear(&raw, &raw.welcome));
	assert_int_equal(raw.welcome.type, RBX_WIRE_WELCOME);
	assert_int_equal(reload(&world, "kept:" SECRET "\n"), 0);
	raw_client_resume(&again, &raw, 0);
	refuses(&world, "gone", SECRET);
	raw_client_leave(&again);
	raw_client_leave(&raw);
	world_stop(&world);
}

/* A client cannot change its owner, though it has the key of the session. */
static void session_is_not_resumed_by_another_name(void **state)
{
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };
	struct raw_client raw = { 0 }, again = { 0 };
	struct rbx_wire_hello *hello = &again.hello.hello;
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\nother:" SECRET "\n");
	raw_client_arrive(&raw, &world);
	raw_client_prove_as(&raw, "one", SECRET);
	assert_true(raw_client_hear(&raw, &raw.welcome));
	raw_client_arrive_to_resume(&again, &world, raw.welcome.welcome.session_id);
	hello->flags = RBX_WIRE_RESUME | RBX_WIRE_HAS_SECRET;
	hello->session_id = raw.welcome.welcome.session_id;
	hello->incarnation = raw.welcome.welcome.incarnation;
	strcpy(hello->credential, "other");
	raw_client_greet(&again);
	rbx_proof_of_client(rbx_root_of_key(&raw.session_key), &again.transcript,
			    auth.auth.proof);
	raw_client_send(&again, &auth);
	raw_client_is_refused(&again, RBX_REASON_WRONG_SECRET);
	raw_client_leave(&again);
	raw_client_leave(&raw);
	world_stop(&world);
}

static void broken_file_changes_nothing(void **state)
{
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\n");
	assert_int_equal(reload(&world, "one:" OTHER "\ntwo:short\n"), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), ":2: the secret is too short"));
	lets_in(&world, "one", SECRET);
	assert_int_equal(reload(&world, "one,quota=32K:" OTHER "\n"), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), ":1: the quota is less than one slab"));
	lets_in(&world, "one", SECRET);
	unlink(world.options.secrets_file);
	assert_int_equal(rbx_server_reload(world.server, &world.options), -ENOENT);
	lets_in(&world, "one", SECRET);
	/* Nor is a server without any secret left. */
	world.options.secrets_file[0] = 0;
	assert_int_equal(rbx_server_reload(world.server, &world.options), -EINVAL);
	lets_in(&world, "one", SECRET);
	world_stop(&world);
}

static void reload_goes_from_one_secret_to_names(void **state)
{
	struct raw_client raw = { 0 }, again = { 0 };
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file, world_secret_file(SECRET "\n", 0600));
	world_start(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	unlink(world.options.secret_file);
	world.options.secret_file[0] = 0;
	strcpy(world.options.secrets_file, world_secrets_file("one:" OTHER "\n"));
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	lets_in(&world, "one", OTHER);
	refuses(&world, "", SECRET);
	raw_client_resume(&again, &raw, 0);
	raw_client_leave(&again);
	raw_client_leave(&raw);
	world_stop(&world);
}

/* ---- Quotas ----------------------------------------------------------------*/

static void quota_is_for_all_sessions_of_a_credential(void **state)
{
	struct rbx_session *one, *two, *other;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.quota_bytes = WORLD_SLAB_BYTES;
	strcpy(world.options.secrets_file,
	       world_secrets_file("one:" SECRET "\nother,quota=128K:" OTHER "\n"));
	world_start(&world);
	one = world_session_as(&world, "one", SECRET);
	two = world_session_as(&world, "one", SECRET);
	other = world_session_as(&world, "other", OTHER);
	assert_int_equal(rbx_session_map(one, &loan), 0);
	assert_int_equal(rbx_session_map(two, &loan), -EDQUOT);
	assert_int_equal(rbx_session_map(other, &loan), 0);
	assert_int_equal(rbx_session_map(other, &loan), 0);
	assert_int_equal(rbx_session_map(other, &loan), -EDQUOT);
	/* A reload changes it for sessions that are there, also one whose credential goes. */
	assert_int_equal(reload(&world, "one,quota=128K:" SECRET "\n"), 0);
	assert_int_equal(rbx_session_map(two, &loan), 0);
	assert_int_equal(rbx_session_unmap(two, &loan), 0);
	assert_int_equal(rbx_session_map(one, &loan), 0);
	assert_int_equal(rbx_session_map(other, &loan), -EDQUOT);
	rbx_session_close(one);
	rbx_session_close(two);
	rbx_session_close(other);
	world_stop(&world);
}

static uint64_t quota_told(struct world *world, const char *credential, const char *secret)
{
	struct raw_client raw = { 0 };
	uint64_t quota_bytes;

	raw_client_arrive(&raw, world);
	raw_client_prove_as(&raw, credential, secret);
	assert_true(raw_client_hear(&raw, &raw.welcome));
	quota_bytes = raw.welcome.welcome.quota_bytes;
	raw_client_leave(&raw);
	return quota_bytes;
}

static void welcome_tells_the_quota_of_the_owner(void **state)
{
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\nother,quota=128K:" OTHER "\n");
	assert_true(quota_told(&world, "one", SECRET) == UINT64_MAX);
	assert_int_equal(quota_told(&world, "other", OTHER), 128 << 10);
	world_stop(&world);
}

/* ---- The table of owners ---------------------------------------------------*/

static bool no_owner_is_left(struct world *world)
{
	bool is_any = false;

	pthread_mutex_lock(&world->server->lock);
	for (uint32_t i = 0; i < world->server->owners.used_count; i++)
		is_any = is_any || world->server->owners.table[i].clients_count;
	pthread_mutex_unlock(&world->server->lock);
	return !is_any;
}

static void owners_without_sessions_give_up_their_place(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	char name[8];
	int i;

	(void)state;
	start(&world, "n0:" SECRET "\nn1:" SECRET "\nn2:" SECRET "\nn3:" SECRET "\n");
	for (i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "n%d", i % 4);
		session = world_session_as(&world, name, SECRET);
		assert_int_equal(rbx_session_map(session, &loan), 0);
		rbx_session_close(session);
		world_wait(&world, no_owner_is_left);
	}
	assert_int_equal(world.server->owners.used_count, 1);
	world_stop(&world);
}

/* Names whose sessions are there keep their places apart, also in one chain. */
static void owners_of_one_chain_are_told_apart(void **state)
{
	struct rbx_owner *owners[3 * RBX_OWNER_CHAINS], *owner;
	char name[RBX_CREDENTIAL_BYTES] = "";
	struct rbx_server *server;
	struct world world;
	uint32_t i;

	(void)state;
	start(&world, "one:" SECRET "\n");
	server = world.server;
	pthread_mutex_lock(&server->lock);
	for (i = 0; i < 3 * RBX_OWNER_CHAINS; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		owners[i] = rbx_owner_take(server, name);
		assert_non_null(owners[i]);
	}
	/* Every second one goes; the others are found again. */
	for (i = 0; i < 3 * RBX_OWNER_CHAINS; i += 2)
		rbx_owner_give(server, owners[i]);
	for (i = 1; i < 3 * RBX_OWNER_CHAINS; i += 2) {
		memset(name, 0, sizeof(name));
		snprintf(name, sizeof(name), "n%u", i);
		owner = rbx_owner_take(server, name);
		assert_ptr_equal(owner, owners[i]);
		rbx_owner_give(server, owner);
		rbx_owner_give(server, owner);
	}
	/* As many as there are places, and no more. */
	for (i = 0; i < RBX_OWNERS_MAX; i++) {
		memset(name, 0, sizeof(name));
		snprintf(name, sizeof(name), "m%u", i);
		assert_non_null(rbx_owner_take(server, name));
	}
	snprintf(name, sizeof(name), "last");
	assert_null(rbx_owner_take(server, name));
	assert_int_equal(server->owners.used_count, RBX_OWNERS_MAX);
	pthread_mutex_unlock(&server->lock);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_and_secret_let_in_together),
		cmocka_unit_test(decoy_proves_nothing),
		cmocka_unit_test(secret_without_a_name_may_be_given_too),
		cmocka_unit_test(old_and_new_secret_let_in),
		cmocka_unit_test(secret_is_required),
		cmocka_unit_test(error_names_the_credential),
		cmocka_unit_test(clients_are_listed_with_their_credential),
		cmocka_unit_test(reload_takes_credentials_away_and_brings_others),
		cmocka_unit_test(session_resumes_after_its_credential_is_gone),
		cmocka_unit_test(session_is_not_resumed_by_another_name),
		cmocka_unit_test(broken_file_changes_nothing),
		cmocka_unit_test(reload_goes_from_one_secret_to_names),
		cmocka_unit_test(quota_is_for_all_sessions_of_a_credential),
		cmocka_unit_test(welcome_tells_the_quota_of_the_owner),
		cmocka_unit_test(owners_without_sessions_give_up_their_place),
		cmocka_unit_test(owners_of_one_chain_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
