/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of rdmabox serve, and what does not go together.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/reach.h"
#include "cli/serve/serve.h"
#include "core/server_labels.h"

#define LEASE_MS_MIN 100

struct serve_options serve_options;

#define SERVER serve_options.server

/* One more, behind a comma. */
static int set_label(const struct cli_option *option, const char *text, char *reason,
		     size_t reason_bytes)
{
	char *labels = option->field;
	size_t used = strlen(labels);

	if (used + !!used + strlen(text) >= option->max) {
		snprintf(reason, reason_bytes, "all labels together have at most %d characters",
			 (int)option->max - 1);
		return -EINVAL;
	}
	snprintf(labels + used, option->max - used, "%s%s", used ? "," : "", text);
	if (!strchr(text, ',') && rbx_server_labels_are_good(labels))
		return 0;
	labels[used] = '\0';
	snprintf(reason, reason_bytes, "give NAME=VALUE without spaces, commas, quotes and "
		 "backslashes, each NAME once");
	return -EINVAL;
}

static const struct cli_option options[] = {
	{ "listen", "ADDR:PORT", "where to serve; port 0 takes a free one",
	  cli_set_text, SERVER.listen, .max = sizeof(SERVER.listen),
	  .is_required = true, .argument = CLI_ARGUMENT_ADDRESS },
	{ "memory", "SIZE", "how much to lend in all", cli_set_size,
	  &SERVER.memory_bytes, .min = 64 << 10, .max = 1ull << 46,
	  .is_required = true,
	  .details = "More than the machine has, or than the memory control group of the "
		     "server may have, is refused." },
	{ "config", "FILE", "read options from a file, and again at SIGHUP", cli_set_text,
	  serve_options.config, .max = sizeof(serve_options.config),
	  .argument = CLI_ARGUMENT_FILE,
	  .details = "Lines `name = value`, in which a name is that of an option without the "
		     "dashes. Options of the command line go before those of the file." },
	{ "slab", "SIZE", "how much to lend at once, a power of two", cli_set_size,
	  &SERVER.slab_bytes, .group = "Memory", .min = 64 << 10, .max = 1 << 30 },
	{ "quota", "SIZE", "most that one credential gets", cli_set_size,
	  &SERVER.quota_bytes, .min = 64 << 10, .max = 1ull << 46,
	  .preset = "all of --memory",
	  .details = "It counts what all clients of a credential have together (`--secrets`), or "
		     "all clients if they have one secret or none." },
	{ "volumes", "N", "named volumes that one credential may have here", cli_set_number,
	  &SERVER.volumes_max, .min = 1, .max = 1024,
	  .preset = "64 with --secrets, else 1024",
	  .details = "A server keeps 1024 of all credentials. A volume counts from its creation "
		     "until it is removed, also if nothing was written to it." },
	{ "overcommit", NULL, "serve even if --memory is more than there is",
	  cli_set_flag, .field = &SERVER.overcommit,
	  .details = "For a machine or a control group that will be given more. Slabs are "
		     "lent as far as there is memory." },
	{ "small-pages", NULL, "do not use huge pages of 2 MiB", cli_set_flag,
	  .field = &SERVER.small_pages,
	  .details = "Otherwise slabs of a multiple of 2 MiB are on huge pages of 2 MiB as "
		     "long as the system has some (`vm.nr_hugepages`), so that a device has "
		     "fewer translations to look up. The ready line says for how many slabs "
		     "they are enough." },
	{ "memory-file", "FILE", "keep the memory in a file, for named volumes to outlive a restart",
	  cli_set_text, SERVER.memory_file, .max = sizeof(SERVER.memory_file),
	  .argument = CLI_ARGUMENT_FILE, .preset = "memory that ends with the server",
	  .details = "A server that is started again with the same file, after a stop or a crash, is "
		     "the same member of its named volumes, with all that they have here. All else "
		     "that it lent has ended. The file is made if it is not there; it holds "
		     "--memory and 12 MiB more, and what is not lent takes no room. It is on "
		     "hugetlbfs or tmpfs (/dev/shm), or with `soft` on any file system that can "
		     "punch holes. See \"MEMORY FILE\" below." },
	{ "lease", "MS", "a client that is silent for so long loses its slabs",
	  cli_set_number, &SERVER.lease_ms, .group = "Clients", .min = LEASE_MS_MIN,
	  .max = 3600000, .unit = "ms",
	  .details = "A client whose own link is down keeps data that no other server has "
		     "for half of this time." },
	{ "clients", "N", "clients at a time", cli_set_number, &SERVER.clients_max,
	  .min = 1, .max = 16384,
	  .preset = "1024, or what the device has room for",
	  .details = "A client that is away within its lease counts. If the completion "
		     "queues of the device are too short for the number given, there are "
		     "fewer clients, and the log says how many. A connected client costs the "
		     "server 24 KiB. A client may need 18 open files, most need 4, and a slab "
		     "needs 2; the server raises its limit as far as it may, and the log says "
		     "if that is too low for most." },
	{ "drain-timeout", "S", "how long SIGTERM waits for clients to leave",
	  cli_set_seconds, &serve_options.drain_timeout_s, .min = 0, .max = 86400,
	  .unit = "s" },
	{ "metrics", "ADDR:PORT", "serve a status page at /, and metrics for Prometheus at /metrics",
	  cli_set_text, serve_options.metrics_at,
	  .max = sizeof(serve_options.metrics_at), .group = "Watching",
	  .argument = CLI_ARGUMENT_ADDRESS,
	  .details = "The metrics are in the text form of Prometheus, as `rdmabox_server_*`. "
		     "Nothing can be changed there, and only that address is bound, whose host "
		     "must be given as a number; but no secret protects it, and it shows the "
		     "addresses of clients. With `verbs` there are no numbers of reads and "
		     "writes: the device carries them out by itself. Port 0 takes a free one; "
		     "the ready line ends with the address." },
	{ "announce", "etcd://H:P[,...]/NAME", "be a member of this pool", cli_set_text,
	  serve_options.announce_at, .max = sizeof(serve_options.announce_at),
	  .group = "Pool",
	  .details = "Clients that name the pool in place of a list of servers find this one. "
		     "The entry has the address, the labels, the memory that is free, and "
		     "whether the server drains; it vanishes 10 s after the server has died, "
		     "and at once at a clean end. While etcd is away the server lends as "
		     "before, and the entry is written again when it is back. rdmabox-pool(1) "
		     "tells how etcd is reached with TLS or a password." },
	{ "address", "HOST:PORT", "where clients find this server", cli_set_text,
	  serve_options.address, .max = sizeof(serve_options.address),
	  .argument = CLI_ARGUMENT_ADDRESS, .preset = "where it listens",
	  .details = "Wanted if --listen is every address of this machine, such as 0.0.0.0. "
		     "A port 0 stands for the one that was taken." },
	{ "label", "NAME=VALUE", "say where the server is, such as rack=7", set_label,
	  .field = SERVER.labels, .max = sizeof(SERVER.labels), .is_repeatable = true,
	  .details = "May be given again, with another name. Clients are told, and put no two "
		     "replicas of a slab where the same `rack` is said, as long as there is a "
		     "choice. A client may look at another label instead, such as `zone`; see "
		     "rdmabox-pool(1)." },
	CLI_REACH_FABRIC(SERVER, "kind of device to serve with"),
	CLI_REACH_DEVICE(SERVER),
	CLI_REACH_SECRET(SERVER, "the clients"),
	{ "secrets", "FILE", "file with a secret for each client, NAME:SECRET lines",
	  cli_set_text, SERVER.secrets_file, .max = sizeof(SERVER.secrets_file),
	  .argument = CLI_ARGUMENT_FILE,
	  .details = "A client gives the NAME with its `--credential`: 1 to 31 characters of "
		     "A-Z a-z 0-9 . _ -. A secret is 16 to 4096 bytes, the rest of the line. "
		     "`NAME,quota=SIZE,volumes=N:SECRET` sets a quota of its own and a number of "
		     "named volumes, 0 to 1024; each may be left out. `NAME,admin:SECRET` may list "
		     "and remove the named volumes of all, and neither read nor write them. Two "
		     "lines of a name are an old and a new secret. Lines that begin with # are comments. At "
		     "most 4096 lines, in a file that gives no rights to others. With "
		     "--secret-file as well, that one is for clients that give no name." },
	CLI_REACH_INTEGRITY(SERVER),
};

static void prepare(void)
{
	memset(&serve_options, 0, sizeof(serve_options));
	serve_options.drain_timeout_s = 30;
	rbx_server_options_defaults(&SERVER);
	/* Where, and how much: nobody but the user can know. */
	SERVER.listen[0] = 0;
	SERVER.memory_bytes = 0;
}

const struct cli_command serve_command = {
	.name = "serve",
	.purpose = "lend this machine's memory to clients",
	.notes = "SIZE takes the suffixes K, M, G and T (1024). A line that begins with "
		 "`ready ADDR:PORT`\nsays that it serves. SIGTERM or SIGINT lets clients "
		 "move away and stops; a second\nsignal stops at once. SIGHUP reads the "
		 "secrets again and, with --config, memory,\novercommit, quota, volumes, secret-file, "
		 "secrets and drain-timeout.",
	CLI_OPTIONS(options),
	.config = serve_options.config,
	.run = cli_serve,
	.prepare = prepare,
};

int serve_options_check(void)
{
	const char *config = serve_options.config;
	char slab[32], memory[32];

	if (!*SERVER.listen && *config)
		return cli_fail(&serve_command, "no address; add listen = ADDR:PORT to %s", config);
	if (!*SERVER.listen)
		return cli_fail(&serve_command, "no address; add --listen ADDR:PORT, or name "
				"a file with --config");
	if (!SERVER.memory_bytes && *config)
		return cli_fail(&serve_command, "no memory; add memory = SIZE to %s", config);
	if (!SERVER.memory_bytes)
		return cli_fail(&serve_command, "no memory; add --memory SIZE, or name a "
				"file with --config");
	if (SERVER.slab_bytes & (SERVER.slab_bytes - 1))
		return cli_fail(&serve_command, "--slab %" PRIu64
				" is not a power of two; give one from 64K "
				"to 1G", SERVER.slab_bytes);
	if (SERVER.slab_bytes > SERVER.memory_bytes)
		return cli_fail(&serve_command,
				"a slab of %s does not fit into %s of memory; "
				"lower --slab or raise --memory",
				cli_size_print(SERVER.slab_bytes, slab, sizeof(slab)),
				cli_size_print(SERVER.memory_bytes, memory, sizeof(memory)));
	if (*SERVER.secrets_file && SERVER.insecure)
		return cli_fail(&serve_command, "--secrets and --insecure exclude each "
				"other; give one of them");
	if (!*serve_options.announce_at && *serve_options.address)
		return cli_fail(&serve_command, "--address is for a pool; add --announce "
				"etcd://HOST:PORT/NAME");
	return cli_reach_check(&serve_command, SERVER.secret_file, SERVER.insecure);
}
