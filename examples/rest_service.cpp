// Is a typical production service, with HTTP or HTTPS, JSON, a store, a FiberPool as the cap on
// requests, metrics, and a graceful end.
//
//   rest_service --listen 127.0.0.1:8080 &
//   curl -d '{"text": "buy milk"}' http://127.0.0.1:8080/notes
//   curl http://127.0.0.1:8080/notes http://127.0.0.1:8080/metrics
//
// With --certificate and --key it uses TLS, and SIGHUP makes it reload both files. --postgres names
// the database for notes; without it they stay in memory. SIGTERM ends the service, which first
// answers all requests in progress.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <weft/go.hpp>
#include <weft/http/server.hpp>
#include <weft/io.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#ifdef WEFT_HAS_TLS
#include <weft/tls/http.hpp>
#endif

#include "command_line.hpp"
#include "notes_service.hpp"

namespace {

struct Options {
  std::string listen = "127.0.0.1:8080", certificate, key, postgres;
  std::size_t connections = 8, max_running = 100;
};

int fail(const char* what, const std::error_code& error) {
  std::fprintf(stderr, "rest_service: %s: %s\n", what, error.message().c_str());
  return 1;
}

int serve(const Options& options) {
  // Watches signals before any client or supervisor can see the service.
  auto signals = weft::io::SignalSet::watch({SIGTERM, SIGINT, SIGHUP});
  if (signals.error) return fail("signals", signals.error);
  const auto [address, malformed] = weft::net::Address::parse(options.listen);
  if (malformed) return fail("--listen", malformed);
  auto [listener, refused] = weft::net::TcpListener::listen(address);
  if (refused) return fail("--listen", refused);

  weft::http::ServerOptions setup;
  setup.limits.request = std::chrono::seconds(5);
#ifdef WEFT_HAS_TLS
  weft::tls::Context secrets;
  if (!options.certificate.empty()) {
    auto [context, error] = weft::tls::Context::server(
        {.certificate_file = options.certificate, .key_file = options.key, .alpn = {"http/1.1"}});
    if (error) return fail("certificate", error);
    setup.secure = weft::tls::server_layer(secrets = context);
  }
#endif
  weft::FiberPool pool({.capacity = options.max_running,
                        .queue_capacity = 10 * options.max_running,
                        .on_full = weft::OnFull::reject});
  auto store = options.postgres.empty()
                   ? make_memory_store()
                   : make_postgres_store(options.postgres, options.connections);
  if (store == nullptr) return fail("--postgres", std::make_error_code(std::errc::not_supported));
  Service service(std::move(store), pool);
  setup.pool = &pool;
  setup.on_access = [&](const weft::http::Access& access) { service.count(access.status); };
  weft::http::Server server(service.routes(), setup);
  service.server = &server;
  auto loop = weft::spawn([&, &from = listener] { return server.serve(from); });
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);

  while (signals.value.wait().value == SIGHUP) {
#ifdef WEFT_HAS_TLS
    if (!options.certificate.empty() && !secrets.reload()) std::puts("the old certificate stays");
#endif
  }
  const bool in_time = server.shutdown(weft::Deadline::after(std::chrono::seconds(10)));
  std::printf("%s\n", in_time ? "all is answered" : "some requests took too long");
  return loop.join() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("rest_service", "A service that keeps notes.");
  Options options;
  line.add("--listen", options.listen, "address and port; port 0 lets the system choose");
  line.add("--certificate", options.certificate, "PEM file, for HTTPS");
  line.add("--key", options.key, "PEM file of its key");
  line.add("--postgres", options.postgres, "where notes are kept, as libpq wants it");
  line.add("--connections", options.connections, "to PostgreSQL, at most");
  line.add("--max-running", options.max_running, "requests that are handled at once");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(options); }); });
}
