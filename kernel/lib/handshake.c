/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - connects to a server and proves who both are.
 *
 * HELLO, CHALLENGE, AUTH, WELCOME (wire/PROTOCOL.md, "Authentication"). The
 * server is believed nothing before its proof in WELCOME holds; until then an
 * answer can only make us fail. On a resume the proofs are made with the key of
 * the session instead of the secret.
 */
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "kernel/lib/context.h"
#include "kernel/lib/session.h"
#include "wire/attach.h"
#include "wire/reason.h"
#include "wire/terms.h"

int rbx_session_attach(struct rbx_session *session, struct rbx_ib_conn *conn,
		       const struct rbx_wire_attach *attach)
{
	uint8_t private_data[RBX_WIRE_ATTACH_BYTES];
	uint32_t reason;
	int err;

	rbx_wire_attach_encode(attach, private_data);
	err = rbx_ib_conn_connect(conn, private_data, sizeof(private_data),
				  session->answer_ms);
	if (err != -ECONNREFUSED)
		return err;
	reason = rbx_wire_refusal_decode(conn->reply, conn->reply_bytes);
	if (!reason)
		return err;
	pr_notice("rdmabox: %s refused: %s\n", session->name,
		  rbx_reason_sentence(reason));
	return rbx_reason_errno(reason);
}

/* What is said in a handshake; too much for the stack of the kernel. */
struct talk {
	struct rbx_wire_message hello;
	struct rbx_wire_message challenge;
	struct rbx_wire_message auth;
	struct rbx_wire_message welcome;
	struct rbx_transcript transcript;
	uint8_t proof[RBX_WIRE_PROOF_BYTES];
};

/* The server has proved itself: from here on the session is up. */
static void session_up(struct rbx_session *session, struct rbx_root root,
		       const struct talk *talk, bool resume)
{
	const struct rbx_wire_welcome *welcome = &talk->welcome.welcome;

	/* Both may sleep. Nobody else has to do with the keys: call_lock. */
	rbx_key_of_connection(root, &talk->transcript,
			      &session->connection_key);
	if (!resume)
		rbx_key_of_session(root, &talk->transcript,
				   &session->session_key);
	session->attach_serial = 0;
	spin_lock_irq(&session->lock);
	if (!resume) /* else it says the same again */
		session->welcome = *welcome;
	WRITE_ONCE(session->free_bytes, welcome->free_bytes);
	session->lease.timeout_ns =
		session->client->options.peer_timeout_ms * 1000000ull / 2;
	session->lease.lease_ns = session->welcome.lease_ms * 1000000ull;
	/* The server's lease runs from AUTH, at the earliest. */
	rbx_lease_begin(&session->lease, session->call_sent_ns, ktime_get_ns());
	session->doubted = false;
	if (session->status == RBX_SESSION_HANDSHAKE) {
		session->status = RBX_SESSION_UP;
		session->receipt_owed = true; /* the server awaits it */
		rbx_session_letters_send_locked(session);
	}
	spin_unlock_irq(&session->lock);
	rbx_session_tick_soon(session);
}

static int hello(struct rbx_session *session, struct talk *talk, bool resume)
{
	talk->hello.type = RBX_WIRE_HELLO;
	if (session->client->options.secret.length_bytes)
		talk->hello.hello.flags |= RBX_WIRE_HAS_SECRET;
	if (resume) {
		talk->hello.hello.flags |= RBX_WIRE_RESUME;
		talk->hello.hello.session_id = session->welcome.session_id;
		talk->hello.hello.incarnation = session->welcome.incarnation;
		talk->hello.hello.last_epoch = session->last_epoch;
	}
	get_random_bytes(talk->hello.hello.nonce,
			 sizeof(talk->hello.hello.nonce));
	return rbx_session_call(session, &talk->hello, RBX_WIRE_CHALLENGE,
				&talk->challenge);
}

static int authenticate(struct rbx_session *session, struct talk *talk,
			bool resume)
{
	struct rbx_root root = session->client->options.secret;
	const struct rbx_wire_welcome *welcome = &talk->welcome.welcome;
	int err;

	if (resume)
		root = rbx_root_of_key(&session->session_key);
	err = hello(session, talk, resume);
	if (err)
		return err;
	rbx_transcript_make(&talk->transcript, &talk->hello, &talk->challenge);
	talk->auth.type = RBX_WIRE_AUTH;
	rbx_proof_of_client(root, &talk->transcript, talk->auth.auth.proof);
	err = rbx_session_call(session, &talk->auth, RBX_WIRE_WELCOME,
			       &talk->welcome);
	if (err)
		return err;
	rbx_proof_of_server(root, &talk->transcript, &talk->welcome,
			    talk->proof);
	if (!rbx_proof_equal(talk->proof, welcome->proof, sizeof(talk->proof))) {
		pr_warn("rdmabox: %s could not prove that it has the secret\n",
			session->name);
		return -EACCES;
	}
	if (!rbx_wire_welcome_makes_sense(
		    welcome, talk->challenge.challenge.incarnation) ||
	    (resume && !rbx_wire_welcome_is_same(welcome, &session->welcome)))
		return -EPROTO;
	session_up(session, root, talk, resume);
	return 0;
}

int rbx_session_handshake(struct rbx_session *session, bool resume)
{
	struct talk *talk = kzalloc(sizeof(*talk), GFP_KERNEL);
	int err;

	if (!talk)
		return -ENOMEM;
	err = rbx_control_open(session);
	if (!err)
		err = authenticate(session, talk, resume);
	if (err == -ENOTCONN)
		err = -EHOSTUNREACH; /* it went away while we talked */
	if (err)
		rbx_control_close(session);
	kfree_sensitive(talk);
	return err;
}
