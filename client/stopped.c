/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stopped.c - why a named volume that is open is read and written no more; see named.h.
 *
 * The thread of the upkeep finds that too few servers answer. Which client has the volume now is
 * known when a server was asked for it once more, a little later. Threads of the program want to
 * know when their requests have failed. So it is kept here, and nobody asks for it before. With one
 * replica it is only known that a server was lost, and why.
 */
#include "client/named.h"
#include "client/session.h"

void rbx_named_stopped(struct rbx_named *named, const char *server, const char *why,
		       bool is_certain)
{
	rbx_lock(&named->lock);
	/* What several servers say is told of the first one. */
	if (strcmp(named->stop_why, why) && (!named->stop_is_certain || is_certain)) {
		named->stop_is_news = true;
		rbx_text_copy(named->stop_server, sizeof(named->stop_server), server);
		rbx_text_copy(named->stop_why, sizeof(named->stop_why), why);
		named->stop_is_certain = is_certain;
	}
	rbx_unlock(&named->lock);
}

void rbx_named_not_stopped(struct rbx_named *named)
{
	rbx_lock(&named->lock);
	named->stop_why[0] = named->stop_server[0] = 0;
	named->stop_is_news = named->stop_is_certain = false;
	rbx_unlock(&named->lock);
}

int rbx_named_stopped_by(struct rbx_named *named, struct rbx_session *session, int err)
{
	char text[RBX_ERROR_BYTES], why[RBX_ERROR_BYTES];
	struct rbx_wire_volume volume;

	rbx_text_copy(text, sizeof(text), rbx_error_text());
	if (rbx_named_look_for_id(named, session, &volume))
		return rbx_error_again(err, text);
	if (volume.record.flags & RBX_WIRE_REMOVED) {
		rbx_named_stopped(named, rbx_session_name(session), "it was removed", true);
	} else if (volume.promised_epoch > named->epoch) {
		snprintf(why, sizeof(why), "another client has opened it: %s", volume.holder);
		rbx_named_stopped(named, rbx_session_name(session), why, true);
	}
	return rbx_error_again(err, text);
}

bool rbx_named_stop_take(struct rbx_named *named, char *server, char *why)
{
	bool is_news;

	rbx_lock(&named->lock);
	is_news = named->stop_is_news;
	named->stop_is_news = false;
	rbx_text_copy(server, RBX_STOP_SERVER_BYTES, named->stop_server);
	rbx_text_copy(why, RBX_ERROR_BYTES, named->stop_why);
	rbx_unlock(&named->lock);
	return is_news;
}

int rbx_named_stop_error(struct rbx_named *named, int err, const char *what)
{
	char server[RBX_STOP_SERVER_BYTES], why[RBX_ERROR_BYTES];

	rbx_lock(&named->lock);
	rbx_text_copy(server, sizeof(server), named->stop_server);
	rbx_text_copy(why, sizeof(why), named->stop_why);
	rbx_unlock(&named->lock);
	if (!*why)
		return 0;
	return rbx_error(err, "%s: volume %s %s: %s%s%s%s", what, named->record.name,
			 named->record.replicas == 1 ? "has lost a server" :
						       "is read and written no more",
			 why, *server ? " (server " : "", server,
			 *server ? ")" : "");
}
