/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reach.h - the options for how client and server reach each other, and others that several
 * commands have. They are in their tables, for fields with these names in `where`. Those of how to
 * reach are a group; it is best the last one of a table.
 */
#ifndef CLI_REACH_H
#define CLI_REACH_H

#include "cli/cli.h"

#define CLI_REACH_GROUP "Connection"

/* Of an option that takes a pool. */
#define CLI_POOL_DETAILS                                                       \
	"A list `ADDR:PORT[,...]`, `file:PATH` or `etcd://HOST:PORT/NAME`: see " \
	"rdmabox-pool(1)."

/* Of a volume with replicas. */
#define CLI_COPY_RATE(where)                                                   \
	{ "copy-rate", "SIZE",                                                 \
	  "bytes a second that are copied to replicas made anew",              \
	  cli_set_size, &(where).copy_rate, .min = 1 << 20,                    \
	  .max = 1ull << 46,                                                   \
	  .details = "By default as many as the link carries while nothing "   \
		     "else is asked, and so few otherwise that requests are "  \
		     "not held up." }

/* Of a named volume with replicas. */
#define CLI_CRASH_COPY(where)                                                  \
	{ "crash-copy", "SIZE",                                                \
	  "bytes that an open after a crash copies at most",                   \
	  cli_set_size, &(where).crash_copy, .min = 1 << 20,                   \
	  .max = 1ull << 46, .preset = "16G",                                  \
	  .details = "Of a named volume with replicas. Writes that jump "      \
		     "about in more than that are several times slower, and "  \
		     "a larger size makes the open that follows a crash of "   \
		     "its client longer." }

#define CLI_REACH_FABRIC(where, what)                                          \
	{ "fabric", "auto|verbs|soft|soft:tcp", what, cli_set_word,            \
	  (where).fabric, .max = sizeof((where).fabric),                       \
	  .words = "auto|verbs|soft|soft:tcp", .group = CLI_REACH_GROUP,       \
	  .details = "`auto` takes an RDMA device if there is one, else the "  \
		     "software device. Any other one never falls back. "       \
		     "`soft` reaches processes of the same user on the same "  \
		     "host by a shared mapping, and all others over TCP; "     \
		     "`soft:tcp` reaches all over TCP." }

#define CLI_REACH_DEVICE(where)                                                \
	{ "device", "NAME[:PORT]", "RDMA device and port, such as mlx5_0:1",   \
	  cli_set_text, (where).device, .max = sizeof((where).device),         \
	  .preset = "the first that is active",                                \
	  .details = "On the soft fabric, `registered` is a device that "      \
		     "wants memory registered, as most NICs do." }

#define CLI_REACH_SECRET(where, whom)                                          \
	{ "secret-file", "FILE", "file with the secret shared with " whom,     \
	  cli_set_text, (where).secret_file,                                   \
	  .max = sizeof((where).secret_file), .argument = CLI_ARGUMENT_FILE,   \
	  .or_next = true,                                                     \
	  .details = "The secret is 16 to 4096 bytes, the same on both "       \
		     "sides, in a file that gives no rights to others." },     \
	{ "insecure", NULL, "use no secret, even beyond loopback",             \
	  cli_set_flag, .field = &(where).insecure,                            \
	  .details = "Without a secret only loopback addresses are served "    \
		     "and reached, unless this option is given." }

/* For clients. */
#define CLI_REACH_CREDENTIAL(where)                                            \
	{ "credential", "NAME", "name of the secret, if each client has its own", \
	  cli_set_text, (where).credential, .max = sizeof((where).credential), \
	  .details = "As in the server's --secrets file. It needs --secret-file." }

/* All of what a command has that connects to servers, or is one. */
#define CLI_REACH_INTEGRITY(where)                                             \
	{ "integrity", "off|mac|tls", "what protects the bytes on the network", \
	  cli_set_integrity, &(where).integrity, .words = "off|mac|tls",       \
	  .preset = "tls over TCP beyond loopback with a secret, else mac",    \
	  .details = "Both sides must have the same. `mac`: control messages " \
		     "are authenticated, data is in clear text. `tls`: all "   \
		     "that goes over TCP is encrypted and authenticated by "   \
		     "TLS 1.3, with a key made of the secret; only the soft "  \
		     "fabric can, not a NIC. `off`: as `mac`." }

/* One of them, or none. Returns 0 or an exit code. */
static inline int cli_reach_check(const struct cli_command *command,
				  const char *secret_file, uint32_t insecure)
{
	if (!*secret_file || !insecure)
		return 0;
	return cli_fail(command, "--secret-file and --insecure exclude each "
				 "other; give one of them");
}

#endif
