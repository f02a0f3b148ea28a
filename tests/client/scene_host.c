/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scene_host.c - see scene_host.h.
 */
#include "tests/client/scene_host.h"

#include <errno.h>
#include <stdarg.h>

#include "tests/client/stage.h"

struct scene_host scene_host;

struct rbx_connection *scene_host_newest(void)
{
	return scene_host.lines_count ? &scene_host.lines[scene_host.lines_count - 1] : NULL;
}

bool scene_host_connects(uint64_t until_ns)
{
	bool connects;

	rbx_monitor_enter(&scene_host.monitor);
	while (!scene_host.connects_count && !scene_host.connects_always &&
	       rbx_now_ns() < until_ns)
		rbx_monitor_wait_until(&scene_host.monitor, until_ns);
	connects = scene_host.connects_count || scene_host.connects_always;
	if (scene_host.connects_count)
		scene_host.connects_count--;
	rbx_monitor_leave(&scene_host.monitor);
	return connects;
}

int rbx_connection_make(struct rbx_session *session,
			const struct rbx_wire_attach *attach,
			struct rbx_connection **connection,
			char why[RBX_SESSION_WHY_BYTES])
{
	uint64_t until_ns = rbx_now_ns() + rbx_session_left_ms(session) * MS;
	struct rbx_connection *line = &scene_host.lines[scene_host.lines_count++];
	bool connects;

	(void)attach;
	(void)why;
	EXPECT(scene_host.lines_count <= LINES_MAX);
	EXPECT(scene_host.lines_count == 1 || line[-1].is_gone);
	line->session = session;
	line->generation = session->generation;
	connects = scene_host_connects(until_ns);
	line->is_made = connects;
	line->is_gone = !connects;
	*connection = line;
	return connects ? 0 : -ETIMEDOUT;
}

void rbx_connection_free(struct rbx_connection *connection)
{
	EXPECT(connection->is_made && !connection->is_gone);
	connection->is_gone = true;
}

uint8_t *rbx_connection_send_buffer(const struct rbx_connection *connection, uint32_t slot)
{
	EXPECT(!(connection->slots_busy >> slot & 1));
	return scene_host.lines[connection - scene_host.lines].buffers[slot];
}

int rbx_connection_send(struct rbx_connection *connection, uint32_t slot, size_t length_bytes)
{
	struct scene_sent *sent = &connection->sent[connection->sent_count];

	EXPECT(connection->is_made && !connection->is_gone);
	EXPECT(!(connection->slots_busy >> slot & 1));
	EXPECT(connection->sent_count < SENT_MAX);
	connection->slots_busy |= 1u << slot;
	memcpy(sent->bytes, connection->buffers[slot], length_bytes);
	sent->length_bytes = length_bytes;
	connection->sent_count++;
	return 0;
}

int rbx_connection_receive(struct rbx_connection *connection, uint32_t slot)
{
	(void)slot;
	EXPECT(connection->is_made && !connection->is_gone);
	return 0;
}

const char *rbx_connection_cut_off(const struct rbx_connection *connection)
{
	EXPECT(!connection->is_gone);
	return NULL;
}

int rbx_clock_make(struct rbx_session *session, struct rbx_clock **clock)
{
	(void)session;
	scene_host.clock.is_there = true;
	*clock = &scene_host.clock;
	return 0;
}

void rbx_clock_soon(struct rbx_clock *clock)
{
	EXPECT(clock->is_there);
	clock->is_soon = true;
}

void rbx_clock_free(struct rbx_clock *clock)
{
	EXPECT(clock->is_there);
	clock->is_there = false;
}

int rbx_sessions_pause(struct rbx_sessions *sessions, uint64_t pause_ns)
{
	(void)sessions;
	(void)pause_ns;
	return -EINTR;
}

int rbx_random(void *bytes, size_t length_bytes)
{
	memset(bytes, (int)scene_host.lines_count + 1, length_bytes);
	return 0;
}

int rbx_error(int err, const char *format, ...)
{
	(void)format;
	return err;
}

const char *rbx_error_text(void)
{
	return "";
}

int rbx_error_again(int err, const char *text)
{
	(void)text;
	return err;
}

const char *rbx_status_text(int status)
{
	(void)status;
	return "failed";
}
