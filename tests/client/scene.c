/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scene.c - see scene.h.
 *
 * Each step is an actor's (stage.h). Posted messages have left when the step is over. At
 * the end the server answers, the fabric connects, and time passes, until all calls have
 * returned; whoever has not closed the session by then does so.
 */
#include "tests/client/scene.h"

#include <errno.h>

#include "tests/client/scene_host.h"
#include "tests/client/scene_server.h"
#include "tests/client/stage.h"
#include "wire/reason.h"

#define SILENCE_MS 1000u
#define RESUME_MS 500u
#define PASS_MS 50u
#define PASSES_MAX 1000u /* until all calls have returned */

/* A call of the owner's. */
struct call {
	uint32_t begun_count, over_count;
	int status;
};

static struct scene {
	struct rbx_sessions sessions;
	struct rbx_session *session;
	bool is_closing, is_closed;
	struct scene_server server;
	struct call map, user_message, resume, give_up, close;
	uint32_t user_messages_put, user_messages_ended;
} scene;

/* ---- The owner --------------------------------------------------------------------*/

static void lost(void *user, const char *reason)
{
	struct rbx_connection *line = scene_host_newest();

	(void)user;
	EXPECT(reason[0] && !scene.is_closed);
	EXPECT(line->lost_count++ == 0);
}

static void evict(void *user, const struct rbx_eviction *eviction)
{
	(void)user;
	(void)eviction;
	EXPECT(false);
}

static void user_message_ended(int status, void *user)
{
	(void)user;
	EXPECT(!scene.is_closed);
	EXPECT(status == 0 || status == -EOPNOTSUPP || status == -ECANCELED ||
	       status == -EHOSTUNREACH);
	scene.user_messages_ended++;
}

static void over(struct call *call, int status)
{
	call->status = status;
	call->over_count++;
}

static void open_session(void *user)
{
	const struct rbx_session_events events = { .lost = lost, .evict = evict };
	const struct rbx_address address = { "server" };
	int err = rbx_session_open(&scene.sessions, &address, &events,
				   &scene.session);

	(void)user;
	EXPECT(!err);
}

static void map(void *user)
{
	struct rbx_loan loan;

	(void)user;
	over(&scene.map, rbx_session_map(scene.session, &loan));
}

static void user_message(void *user)
{
	(void)user;
	if (!rbx_session_message_submit(scene.session, "a", 1,
					user_message_ended, NULL))
		scene.user_messages_put++;
	over(&scene.user_message,
	     rbx_session_message_send(scene.session, "b", 1));
}

/* And its one queue pair: the server was asked nothing in between. */
static void resume(void *user)
{
	uint64_t until_ns = rbx_now_ns() + RESUME_MS * MS;
	struct rbx_wire_attach attach;
	int err;

	(void)user;
	rbx_session_hold_asks(scene.session);
	err = rbx_session_resume(scene.session, until_ns);
	if (!err) {
		(void)scene_host_connects(until_ns);
		EXPECT(!scene.session->borrower.asked);
		if (!rbx_session_attach_begin(scene.session, until_ns, &attach))
			rbx_session_attach_end(scene.session);
	}
	rbx_session_let_asks_go(scene.session);
	over(&scene.resume, err);
}

static void give_up(void *user)
{
	(void)user;
	rbx_session_give_up(scene.session);
	over(&scene.give_up, 0);
}

static void close_session(void *user)
{
	(void)user;
	scene.is_closing = true;
	rbx_session_close(scene.session);
	scene.is_closed = true;
	over(&scene.close, 0);
}

/* ---- The fabric ----------------------------------------------------------------------*/

static void end(void *user)
{
	struct rbx_connection *line = user;

	if (!line->is_gone)
		rbx_session_connection_lost(line->session, line->generation,
					    "the connection was ended", 0);
}

static void connect(void *user)
{
	(void)user;
	rbx_monitor_enter(&scene_host.monitor);
	scene_host.connects_count++;
	rbx_monitor_wake(&scene_host.monitor);
	rbx_monitor_leave(&scene_host.monitor);
}

static void say(struct rbx_connection *line, const struct rbx_wire_message *m)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];

	rbx_session_received(line->session, line->generation, 0, bytes,
			     scene_server_encode(&scene.server, m, bytes));
}

/* All that was posted has left. */
static void posts_leave(void *user)
{
	struct rbx_connection *line = user;
	uint32_t slot;

	for (slot = 0; slot < RBX_BORROWER_SLOTS && !line->is_gone; slot++) {
		if (!(line->slots_busy >> slot & 1))
			continue;
		line->slots_busy &= ~(1u << slot);
		rbx_session_sent(line->session, line->generation, slot);
	}
}

static void tick(void *user)
{
	(void)user;
	scene_host.clock.is_soon = false;
	(void)rbx_session_tick(scene.session, rbx_now_ns());
}

/* ---- The server -----------------------------------------------------------------------*/

static void reason(void *user)
{
	struct rbx_connection *line = user;

	if (!line->is_gone)
		say(line, &(struct rbx_wire_message){
				  .type = RBX_WIRE_ERROR,
				  .status = RBX_REASON_STALE_SESSION,
			  });
}

static void answer(void *user)
{
	struct rbx_connection *line = user;
	struct rbx_wire_message m, answers;

	if (line->is_gone || !line->sent_count)
		return;
	if (!line->is_heard)
		scene.server.seals = (struct rbx_seals){ 0 };
	line->is_heard = true;
	EXPECT(!rbx_seal_decode(&scene.server.seals.in, line->sent[0].bytes,
				line->sent[0].length_bytes, &m));
	line->sent_count--;
	memmove(line->sent, line->sent + 1, line->sent_count * sizeof(line->sent[0]));
	if (m.type == RBX_WIRE_BYE)
		end(line);
	else if (scene_server_answer(&scene.server, &m, &answers))
		say(line, &answers);
}

/* ---- Steps --------------------------------------------------------------------------*/

static bool is_under_way(const struct call *call)
{
	return call->begun_count != call->over_count;
}

static void begin(struct call *call, void (*act)(void *user))
{
	if (scene.is_closing)
		return; /* nothing comes after it */
	call->begun_count++;
	stage_act(act, NULL);
}

static void step(char which)
{
	struct rbx_connection *line = scene_host_newest();

	switch ((enum step)which) {
	case STEP_MAP:
		begin(&scene.map, map);
		break;
	case STEP_USER_MESSAGE:
		begin(&scene.user_message, user_message);
		break;
	case STEP_RESUME:
		begin(&scene.resume, resume);
		/* A resume waits for no answer. */
		EXPECT(scene.is_closing || !scene.session->borrower.asked);
		break;
	case STEP_GIVE_UP:
		begin(&scene.give_up, give_up);
		break;
	case STEP_CLOSE:
		begin(&scene.close, close_session);
		break;
	case STEP_END:
		stage_act(end, line);
		break;
	case STEP_CONNECT:
		stage_act(connect, NULL);
		break;
	case STEP_ANSWER:
		stage_act(answer, line);
		break;
	case STEP_REASON:
		stage_act(reason, line);
		break;
	}
	stage_act(posts_leave, scene_host_newest());
}

/* A connection that stands ends now, and nobody but the owner's callback is to hear of
 * it. */
static bool tells(char which)
{
	return (which == STEP_END || which == STEP_REASON) &&
	       !scene.is_closing && !is_under_way(&scene.resume) &&
	       !is_under_way(&scene.give_up) && !scene_host_newest()->is_gone &&
	       scene.session->borrower.phase == RBX_BORROWER_UP;
}

static void look_at_clock(void)
{
	while (scene_host.clock.is_there && scene_host.clock.is_soon)
		stage_act(tick, NULL);
}

/* Until all calls have returned. */
static void all_end(void)
{
	uint32_t passes = 0;

	scene_host.connects_always = true;
	while (stage_actors_count()) {
		EXPECT(passes++ < PASSES_MAX);
		step(STEP_CONNECT);
		step(STEP_ANSWER);
		stage_pass_ns(PASS_MS * MS);
		scene_host.clock.is_soon = true;
		look_at_clock();
	}
}

static void scene_open(const char *order, bool last_first, uint32_t silence_ms)
{
	memset(&scene, 0, sizeof(scene));
	memset(&scene_host, 0, sizeof(scene_host));
	scene_server_open(&scene.server);
	scene.sessions = (struct rbx_sessions){
		.secret = scene.server.root,
		.silence_ms = silence_ms,
	};
	stage_open(order, last_first);
	rbx_monitor_init(&scene_host.monitor);
	scene_host.connects_count = 1;
	stage_act(open_session, NULL);
	while (!scene.session)
		step(STEP_ANSWER);
	look_at_clock();
}

static void scene_check(void)
{
	uint32_t i;

	EXPECT(scene.is_closed && !scene_host.clock.is_there);
	EXPECT(!is_under_way(&scene.map) && !is_under_way(&scene.user_message));
	EXPECT(!is_under_way(&scene.resume) && !is_under_way(&scene.give_up));
	EXPECT(scene.close.over_count == 1);
	EXPECT(scene.user_messages_ended == scene.user_messages_put);
	for (i = 0; i < scene_host.lines_count; i++)
		EXPECT(scene_host.lines[i].is_gone);
}

/* Whether the owner still has to hear of an end when this step is over. */
static bool has_to_tell(char which, bool had_to_tell)
{
	return tells(which) ||
	       (had_to_tell && which != STEP_RESUME && which != STEP_GIVE_UP &&
		which != STEP_CLOSE);
}

void scene_play(const char *order, bool is_late, bool last_first)
{
	struct rbx_connection *line = &scene_host.lines[0];
	bool is_to_be_told = false;
	const char *at;

	scene_open(order, last_first, SILENCE_MS);
	for (at = order; *at; at++) {
		is_to_be_told = has_to_tell(*at, is_to_be_told);
		line = is_to_be_told ? scene_host_newest() : line;
		step(*at);
		if (is_late && at[1])
			continue;
		look_at_clock();
		EXPECT(!is_to_be_told || line->lost_count == 1);
	}
	all_end();
	if (!scene.is_closed) {
		step(STEP_CLOSE);
		all_end();
	}
	scene_check();
	stage_close();
}

bool scene_close_waits(uint32_t silence_ms, uint32_t ms)
{
	struct rbx_connection *line = &scene_host.lines[0];
	bool stands;

	scene_open("a close that waits", false, silence_ms);
	step(STEP_CLOSE);
	stage_pass_ns(ms * MS);
	stands = !line->is_gone;
	all_end();
	scene_check();
	stage_close();
	return stands;
}
