// SPDX-License-Identifier: Apache-2.0

import com.sun.net.httpserver.HttpServer;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import labels.Labels;

/** An HTTP server with a pool of threads, which labels what it does. */
public class Server {
    private static final long WORK_NS = 10_000_000;

    public static void main(String[] args) throws Exception {
        int port = args.length > 0 ? Integer.parseInt(args[0]) : 8080;
        Labels.describe("service.name", "shop");
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 64);
        server.createContext("/", exchange -> {
            String tenant = exchange.getRequestHeaders().getFirst("X-Tenant");
            String route = exchange.getRequestURI().getPath();
            try (Labels.Scope scope = Labels.scope("tenant", tenant == null ? "unknown" : tenant, "route", route)) {
                work();
            }
            byte[] done = "done\n".getBytes();
            exchange.sendResponseHeaders(200, done.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(done);
            }
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
        System.out.println("listening on " + server.getAddress().getPort());
    }

    /** What a request does. */
    private static void work() {
        long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + WORK_NS;
        while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end) {
            // what it takes
        }
    }
}
