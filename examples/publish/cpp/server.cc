// SPDX-License-Identifier: Apache-2.0
// An HTTP server with a thread for each connection, which labels what it does.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#define LABELS_IMPLEMENTATION
#include "labels.h"

namespace
{

constexpr size_t kMaxRequest = 4096;
constexpr auto kWork = std::chrono::milliseconds(10);

// What a request does.
void work()
{
	const auto now = [] {
		timespec t;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
	};
	const auto end = now() + kWork;

	while (now() < end) {
	}
}

std::string header(const std::string &head, const std::string &name)
{
	const size_t at = head.find("\r\n" + name + ": ");

	if (at == std::string::npos)
		return "unknown";
	const size_t from = at + name.size() + 4;
	return head.substr(from, head.find("\r\n", from) - from);
}

std::string path(const std::string &head)
{
	const size_t from = head.find(' ') + 1;

	return head.substr(from, head.find_first_of(" ?", from) - from);
}

void serve(int client)
{
	std::string head;
	char buffer[1024];

	while (head.size() < kMaxRequest && head.find("\r\n\r\n") == std::string::npos) {
		const ssize_t n = read(client, buffer, sizeof(buffer));

		if (n <= 0)
			break;
		head.append(buffer, static_cast<size_t>(n));
	}
	const std::string tenant = header(head, "X-Tenant"), route = path(head);
	{
		const labels::Scope request{ { "tenant", tenant } };
		const labels::Scope handler{ { "route", route } }; // has the tenant, too
		work();
	}
	const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ndone\n";
	if (write(client, ok.data(), ok.size()) < 0)
		std::perror("answer");
	close(client);
}

} // namespace

int main(int argc, char **argv)
{
	sockaddr_in address = {};
	socklen_t len = sizeof(address);
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080));
	if (server < 0 || bind(server, reinterpret_cast<sockaddr *>(&address), len) != 0 || listen(server, 64) != 0 ||
	    getsockname(server, reinterpret_cast<sockaddr *>(&address), &len) != 0) {
		std::perror("listen");
		return 1;
	}
	std::printf("listening on %d\n", ntohs(address.sin_port));
	std::fflush(stdout);
	for (;;) {
		const int client = accept(server, nullptr, nullptr);

		if (client >= 0)
			std::thread(serve, client).detach();
	}
}
