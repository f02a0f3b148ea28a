/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - connects to a server and proves who both are.
 *
 * HELLO, CHALLENGE, AUTH, WELCOME (wire/PROTOCOL.md, "Authentication"). The
 * server is believed nothing before its proof in WELCOME holds; until then an
 * answer can only make us fail. On a resume the proofs are made with the key of
 * the session instead of the secret.
 */
#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/session/state.h"
#include "wire/attach.h"
#include "wire/reason.h"
#include "wire/terms.h"

int rbx_session_connect(struct rbx_session *session,
			const struct rbx_qp_init *init,
			const struct rbx_wire_attach *attach,
			struct rbx_qp **qp)
{
	struct rbx_session_set *set = session->set;
	uint8_t private_data[RBX_WIRE_ATTACH_BYTES];
	uint8_t reply[RBX_PRIVATE_DATA_MAX];
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_connect_init connect = {
		.address = session->address,
		.timeout_ms = session->answer_ms,
		.private_data = private_data,
		.private_data_bytes = sizeof(private_data),
		.reply_data = reply,
		.reply_data_max_bytes = sizeof(reply),
	};
	uint32_t reason;
	int err;

	rbx_wire_attach_encode(attach, private_data);
	err = set->ops->connect(set->options.device, init, &connect, qp, error);
	if (!err)
		return 0;
	reason = rbx_wire_refusal_decode(reply, connect.reply_data_bytes);
	if (err == -ECONNREFUSED && reason)
		return rbx_error(rbx_reason_errno(reason), "%s refused: %s",
				 session->address, rbx_reason_sentence(reason));
	return rbx_error(err, "%s", error);
}

static int control_connect(struct rbx_session *session)
{
	struct rbx_session_set *set = session->set;
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_CONTROL,
	};
	const struct rbx_qp_init init = {
		.send_cq = set->cq,
		.recv_cq = set->cq,
		.send_depth_count = RBX_SESSION_SENDS,
		.recv_depth_count = RBX_SESSION_RECEIVES,
		.max_sge = 1,
	};
	struct rbx_qp *qp;
	int err;

	err = rbx_session_connect(session, &init, &attach, &qp);
	if (err)
		return err;
	pthread_mutex_lock(&set->lock);
	err = rbx_session_connection_start(session, qp);
	pthread_mutex_unlock(&set->lock);
	return err;
}

static bool welcome_makes_sense(const struct rbx_session *session,
				const struct rbx_wire_welcome *welcome,
				const struct rbx_wire_message *challenge,
				bool resume)
{
	return rbx_wire_welcome_makes_sense(welcome,
					    challenge->challenge.incarnation) &&
	       (!resume ||
		rbx_wire_welcome_is_same(welcome, &session->welcome));
}

/* The server has proved itself: from here on the session is up. */
static void session_up(struct rbx_session *session, struct rbx_root root,
		       const struct rbx_transcript *transcript,
		       const struct rbx_wire_welcome *welcome, bool resume)
{
	struct rbx_session_set *set = session->set;

	pthread_mutex_lock(&set->lock);
	rbx_key_of_connection(root, transcript, &session->connection_key);
	session->attach_serial = 0;
	if (!resume) { /* else it says the same again */
		rbx_key_of_session(root, transcript, &session->session_key);
		session->welcome = *welcome;
	}
	RBX_STORE_RELAXED(&session->free_bytes, welcome->free_bytes);
	/* The server's lease runs from AUTH, at the earliest. */
	session->lease.timeout_ns = set->options.peer_timeout_ms * 1000000ull;
	session->lease.lease_ns = session->welcome.lease_ms * 1000000ull;
	rbx_lease_begin(&session->lease, session->call_sent_ns, rbx_now_ns());
	if (session->status == RBX_SESSION_HANDSHAKE) {
		session->status = RBX_SESSION_UP;
		session->receipt_owed = true; /* the server awaits it */
		rbx_session_letters_send(session);
	}
	pthread_mutex_unlock(&set->lock);
	rbx_session_set_wake(set); /* its timers begin */
}

static int hello_call(struct rbx_session *session, bool resume,
		      struct rbx_wire_message *hello,
		      struct rbx_wire_message *challenge)
{
	int err;

	*hello = (struct rbx_wire_message){ .type = RBX_WIRE_HELLO };
	if (session->set->options.secret)
		hello->hello.flags |= RBX_WIRE_HAS_SECRET;
	if (resume) {
		hello->hello.flags |= RBX_WIRE_RESUME;
		hello->hello.session_id = session->welcome.session_id;
		hello->hello.incarnation = session->welcome.incarnation;
		hello->hello.last_epoch = session->last_epoch;
	}
	err = rbx_random(hello->hello.nonce, sizeof(hello->hello.nonce));
	if (err)
		return err;
	return rbx_session_call(session, hello, RBX_WIRE_CHALLENGE, challenge);
}

static int authenticate(struct rbx_session *session, bool resume)
{
	struct rbx_root root = rbx_root_of_secret(session->set->options.secret);
	struct rbx_wire_message hello, challenge, welcome;
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };
	uint8_t proof[RBX_WIRE_PROOF_BYTES];
	struct rbx_transcript transcript;
	int err;

	if (resume)
		root = rbx_root_of_key(&session->session_key);
	err = hello_call(session, resume, &hello, &challenge);
	if (err)
		return err;
	rbx_transcript_make(&transcript, &hello, &challenge);
	rbx_proof_of_client(root, &transcript, auth.auth.proof);
	err = rbx_session_call(session, &auth, RBX_WIRE_WELCOME, &welcome);
	if (err)
		return err;
	rbx_proof_of_server(root, &transcript, &welcome, proof);
	if (!rbx_proof_equal(proof, welcome.welcome.proof, sizeof(proof)))
		return rbx_error(-EACCES,
				 "%s could not prove that it has the secret",
				 session->address);
	if (!welcome_makes_sense(session, &welcome.welcome, &challenge, resume))
		return rbx_error(-EPROTO, "%s tells nonsense about itself",
				 session->address);
	session_up(session, root, &transcript, &welcome.welcome, resume);
	return 0;
}

int rbx_session_handshake(struct rbx_session *session, bool resume)
{
	int err;

	err = control_connect(session);
	if (err)
		return err;
	err = authenticate(session, resume);
	if (err == -ENOTCONN)
		err = -EHOSTUNREACH; /* it went away while we talked */
	if (err) {
		pthread_mutex_lock(&session->set->lock);
		rbx_session_connection_end(session);
		pthread_mutex_unlock(&session->set->lock);
	}
	return err;
}
