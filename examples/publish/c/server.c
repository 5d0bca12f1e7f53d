// SPDX-License-Identifier: Apache-2.0
/* An HTTP server with a thread for each connection, which labels what it does. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LABELS_IMPLEMENTATION
#include "labels.h"

#define MAX_REQUEST 4096
#define WORK_MS 10

static struct labels_string text(const char *s)
{
	struct labels_string t = { strlen(s), (const unsigned char *)s };

	return t;
}

/* What a request does. */
static void work(void)
{
	struct timespec t;
	long long end = 0, now = 0;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		now = t.tv_sec * 1000LL + t.tv_nsec / 1000000;
		end = end ? end : now + WORK_MS;
	} while (now < end);
}

static void answer(int client, const char *route, const char *tenant)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ndone\n";
	struct labels_label storage[] = {
		{ text("tenant"), text(tenant) },
		{ text("route"), text(route) },
	};
	struct labels_set set = { storage, 2, 2 };
	struct labels_set *before = labels_swap(&set);

	work();
	labels_swap(before); /* before the set goes */
	if (write(client, ok, sizeof(ok) - 1) < 0)
		return; /* the client has gone */
}

/* The value of X-Tenant, in the request's own memory. */
static char *tenant_of(char *head)
{
	for (char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, "X-Tenant:", 9) == 0) {
			line += 9 + strspn(line + 9, " ");
			line[strcspn(line, "\r\n")] = 0;
			return line;
		}
	}
	return "unknown";
}

static void *serve(void *arg)
{
	int client = (int)(intptr_t)arg;
	char head[MAX_REQUEST + 1];
	size_t n = 0;

	while (n < MAX_REQUEST) {
		ssize_t got = read(client, head + n, MAX_REQUEST - n);

		if (got <= 0)
			break;
		n += (size_t)got;
		head[n] = 0;
		if (strstr(head, "\r\n\r\n")) {
			char *tenant = tenant_of(head), *route = strchr(head, ' ');

			if (route) {
				route++;
				route[strcspn(route, " ?\r\n")] = 0;
				answer(client, route, tenant);
			}
			break;
		}
	}
	close(client);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 8080));
	if (server < 0 || bind(server, (struct sockaddr *)&address, len) != 0 || listen(server, 64) != 0 ||
	    getsockname(server, (struct sockaddr *)&address, &len) != 0) {
		perror("listen");
		return 1;
	}
	printf("listening on %d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		int client = accept(server, NULL, NULL);
		pthread_t thread;

		if (client < 0)
			continue;
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)client) == 0)
			pthread_detach(thread);
		else
			close(client);
	}
}
