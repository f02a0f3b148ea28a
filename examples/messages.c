/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * messages.c - two programs that exchange messages: a ball goes back and forth.
 *
 *	cc messages.c -o messages $(pkg-config --cflags --libs rdmabox)
 *	./messages serve 127.0.0.1:7471 &
 *	./messages play 127.0.0.1:7471 1000	once the first says "ready"
 *
 * Between two machines, give both a file with their secret as the last argument.
 *
 * The server lends memory, as `rdmabox serve` does, and also has a message handler. The
 * player's handler throws the ball back as soon as it comes. So after the first throw the
 * handlers play the whole game, and main() sleeps until it is over. Neither handler ever
 * waits.
 */
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdmabox/message.h>
#include <rdmabox/server.h>

#define THROWS_MAX 100000000ul

/* The message: how often the ball was thrown. */
struct ball {
	uint64_t throws;
};

static int complain(const char *what)
{
	fprintf(stderr, "messages: %s: %s\n", what, rbx_last_error());
	return 2;
}

/* ---- The server --------------------------------------------------------------- */

static void catch_and_return(struct rbx_server *server, uint64_t client,
			     const void *data, size_t length, void *user)
{
	(void)user;
	/* The data is valid during the call, and submit copies it. */
	if (rbx_server_message_submit(server, client, data, length, NULL, NULL))
		complain("cannot throw it back");
}

static int serve(const char *address, const char *secret_file)
{
	struct rbx_server_options options;
	struct rbx_server *server;
	sigset_t ending;
	int signal;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	rbx_server_options_defaults(&options);
	snprintf(options.listen, sizeof(options.listen), "%s", address);
	snprintf(options.secret_file, sizeof(options.secret_file), "%s",
		 secret_file);
	options.memory_bytes = 64 << 20;
	options.message = catch_and_return;
	if (rbx_server_start(&server, &options))
		return complain("cannot serve");
	printf("ready %s\n", rbx_server_address(server));
	fflush(stdout);
	sigwait(&ending, &signal);
	rbx_server_stop(server);
	return 0;
}

/* ---- The player ----------------------------------------------------------------*/

struct game {
	uint64_t throws; /* to play */
	uint64_t thrown;
	int failed;
	sem_t over;
};

static void game_over(struct game *game, const char *why)
{
	if (why)
		fprintf(stderr, "messages: %s\n", why);
	game->failed = why != NULL;
	sem_post(&game->over);
}

/* The other side has caught the ball, or never will. */
static void caught(int status, void *user)
{
	if (status)
		game_over(user, strerror(-status));
}

static void throw_back(struct rbx_peer *peer, const void *data, size_t length,
		       void *user)
{
	struct game *game = user;
	struct ball ball;

	memcpy(&ball, data, length < sizeof(ball) ? length : sizeof(ball));
	if (length != sizeof(ball) || ball.throws != game->thrown)
		game_over(game, "this is another ball");
	else if (game->thrown == game->throws)
		game_over(game, NULL);
	else {
		ball.throws = ++game->thrown;
		if (rbx_message_submit(peer, &ball, sizeof(ball), caught, game))
			game_over(game, rbx_last_error());
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int play(const char *address, uint64_t throws, const char *secret_file)
{
	struct rbx_options options;
	struct game game = { .throws = throws, .thrown = 1 };
	const struct ball first = { .throws = 1 };
	struct rbx_context *ctx = NULL;
	struct rbx_peer *peer;
	double begin;

	sem_init(&game.over, 0, 0);
	rbx_options_defaults(&options);
	snprintf(options.secret_file, sizeof(options.secret_file), "%s",
		 secret_file);
	if (rbx_open(&ctx, &options))
		return complain("cannot open a device");
	if (rbx_peer_connect(ctx, &peer, address)) {
		rbx_close(ctx);
		return complain("cannot connect");
	}
	begin = seconds();
	/* The handler first, because the answer may come at once. */
	if (rbx_peer_on_message(peer, throw_back, &game) ||
	    rbx_message_submit(peer, &first, sizeof(first), caught, &game))
		game_over(&game, rbx_last_error());
	sem_wait(&game.over);
	if (!game.failed)
		printf("%llu there and back in %.3f s\n",
		       (unsigned long long)throws, seconds() - begin);
	rbx_peer_close(peer);
	rbx_close(ctx);
	return game.failed;
}

int main(int argc, char **argv)
{
	unsigned long throws = 0;

	if (argc >= 3 && argc <= 4 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], argc == 4 ? argv[3] : "");
	if (argc >= 4 && argc <= 5 && strcmp(argv[1], "play") == 0)
		throws = strtoul(argv[3], NULL, 10);
	if (throws > 0 && throws <= THROWS_MAX)
		return play(argv[2], throws, argc == 5 ? argv[4] : "");
	fputs("usage: messages serve HOST:PORT [SECRET-FILE]\n"
	      "       messages play HOST:PORT THROWS [SECRET-FILE]\n",
	      stderr);
	return 2;
}
