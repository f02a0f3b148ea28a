/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * futures.cpp - RDMAbox from C++: handles that close themselves, and a write as a
 * std::future.
 *
 *	rdmabox serve --listen 127.0.0.1:7471 --memory 1G &
 *	c++ -std=c++17 futures.cpp -o futures $(pkg-config --cflags --libs rdmabox) -pthread
 *	./futures 127.0.0.1:7471
 *
 * A request and its buffer must stay at the same address until the request has ended. So the
 * request is allocated here and freed by its own callback. The caller keeps the buffer until
 * the future is ready, or until the volume is closed if an exception comes first.
 */
#include <cstdio>
#include <future>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <rdmabox/rdmabox.h>

namespace {

struct closer {
	void operator()(rbx_context *ctx) const { rbx_close(ctx); }
	void operator()(rbx_volume *volume) const { rbx_volume_close(volume); }
};

using context = std::unique_ptr<rbx_context, closer>;
using volume = std::unique_ptr<rbx_volume, closer>;

void check(int err)
{
	if (err)
		throw std::runtime_error(rbx_last_error());
}

context open_context()
{
	rbx_context *ctx = nullptr;

	check(rbx_open(&ctx, nullptr));
	return context(ctx);
}

volume open_volume(const context &ctx, const char *servers, uint64_t size_bytes)
{
	rbx_volume *opened = nullptr;

	check(rbx_volume_open(ctx.get(), &opened, servers, size_bytes, nullptr));
	return volume(opened);
}

struct promised {
	rbx_request request = {};
	std::promise<void> promise;
};

/* Called on a poller's thread. */
void keep_promise(rbx_request *request)
{
	std::unique_ptr<promised> owned(static_cast<promised *>(request->user));

	if (request->status == 0)
		owned->promise.set_value();
	else
		owned->promise.set_exception(std::make_exception_ptr(std::system_error(
			-request->status, std::generic_category(), "remote memory")));
}

std::future<void> submit(const volume &on, rbx_op op, std::vector<char> &buf, uint64_t offset)
{
	auto owned = std::make_unique<promised>();
	auto future = owned->promise.get_future();
	rbx_request *request = &owned->request;

	request->op = op;
	request->buf = buf.data();
	request->length_bytes = static_cast<uint32_t>(buf.size());
	request->offset = offset;
	request->complete = keep_promise;
	request->user = owned.get();
	check(rbx_submit(on.get(), &request, 1));
	owned.release(); /* its callback owns it now */
	return future;
}

void run(const char *servers)
{
	/* Declared before the volume, so that they outlive it: its destructor waits for its
	 * requests. */
	std::vector<std::vector<char>> pages;
	std::vector<char> back(4096);
	auto ctx = open_context();
	auto remote = open_volume(ctx, servers, 1 << 20);
	std::vector<std::future<void>> written;

	for (int i = 0; i < 16; i++) {
		pages.emplace_back(4096, static_cast<char>('a' + i));
		written.push_back(submit(remote, RBX_WRITE, pages.back(), i * 4096u));
	}
	for (auto &write : written)
		write.get();
	submit(remote, RBX_READ, back, 7 * 4096u).get();
	if (back != pages[7])
		throw std::runtime_error("page 7 differs");
	std::printf("16 futures kept; page 7 begins with %.3s\n", back.data());
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		std::fprintf(stderr, "usage: futures SERVER:PORT[,SERVER:PORT...]\n");
		return 2;
	}
	try {
		run(argv[1]);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "futures: %s\n", e.what());
		return 1;
	}
	return 0;
}
