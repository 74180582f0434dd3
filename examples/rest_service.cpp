// A service as people run them: HTTP or HTTPS, JSON, a store, a FiberPool as the cap on requests,
// metrics, and a graceful end.
//
//   rest_service --listen 127.0.0.1:8080 &
//   curl -d '{"text": "buy milk"}' http://127.0.0.1:8080/notes
//   curl http://127.0.0.1:8080/notes http://127.0.0.1:8080/metrics
//
// With --certificate and --key it speaks TLS, and SIGHUP makes it read them anew. --postgres says
// where notes are kept, else in memory. SIGTERM ends it: what has been asked is answered.
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <weft/go.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/io.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#ifdef WEFT_HAS_TLS
#include <weft/tls/http.hpp>
#endif

#include "command_line.hpp"
#include "notes_page.hpp"
#include "notes_store.hpp"

namespace {

using nlohmann::json;
using weft::http::Request;
using weft::http::Response;

struct Options {
  std::string listen = "127.0.0.1:8080", certificate, key, postgres;
  std::size_t connections = 8, max_running = 100;
};

void answer(Response& response, int status, const json& body) {
  response.set_status(status);
  response.add_header("Content-Type", "application/json");
  (void)response.send(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

json to_json(const Note& note) { return {{"id", note.id}, {"text", note.text}}; }

// 0, which no note has, for what is no number.
std::int64_t id_of(const Request& request) {
  const std::string text(request.parameter("id"));
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() ? id : 0;
}

class Service {
 public:
  Service(std::unique_ptr<NotesStore> store, weft::FiberPool& pool)
      : store_(std::move(store)), pool_(pool) {}

  weft::http::Router routes() {
    weft::http::Router router;
    // A failure of the store is not the client's fault, and may pass.
    router.use([](Request& request, Response& response, const weft::http::Handler& next) {
      try {
        next(request, response);
      } catch (const StoreError& error) {
        std::fprintf(stderr, "rest_service: %s\n", error.what());
        answer(response, 503, {{"error", "the store does not answer"}});
      }
    });
    router.get("/", [](Request&, Response& response) {
      response.add_header("Content-Type", "text/html; charset=utf-8");
      (void)response.send(kPage);
    });
    router.get("/notes", [this](Request& request, Response& response) {
      json all = json::array();
      for (const Note& note : store_->list(request.context())) all.push_back(to_json(note));
      answer(response, 200, all);
    });
    router.post("/notes", [this](Request& request, Response& response) { add(request, response); });
    router.get("/notes/{id}", [this](Request& request, Response& response) {
      const auto found = store_->find(id_of(request), request.context());
      if (found.empty()) return answer(response, 404, {{"error", "there is no such note"}});
      answer(response, 200, to_json(found.front()));
    });
    router.del("/notes/{id}", [this](Request& request, Response& response) {
      const bool removed = store_->remove(id_of(request), request.context());
      answer(response, removed ? 200 : 404, {{"removed", removed}});
    });
    router.get("/metrics", [this](Request&, Response& response) { show_metrics(response); });
    return router;
  }
  void count(int status) { ++answers_[static_cast<std::size_t>(status / 100) % answers_.size()]; }
  const weft::http::Server* server = nullptr;  // Its metrics are shown.

 private:
  void add(Request& request, Response& response) {
    const auto [body, error] = request.read_all();
    if (error) return;  // The server answers for us.
    const json note = json::parse(body, nullptr, false);
    const json text = note.is_object() ? note.value("text", json()) : json();
    // Not every store has a place for a zero.
    if (!text.is_string() || text.get_ref<const std::string&>().find('\0') != std::string::npos)
      return answer(response, 400, {{"error", "an object with a text without NUL is needed"}});
    answer(response, 201, to_json({store_->add(text, request.context()), text}));
  }

  void show_metrics(Response& response) {
    std::string text;
    const auto put = [&text](const std::string& name, std::uint64_t value) {
      text += name + " " + std::to_string(value) + "\n";
    };
    const weft::http::ServerStats seen = server->stats();
    const weft::PoolStats pool = pool_.stats();
    for (std::size_t i = 2; i < answers_.size(); ++i)
      put("http_answers_total{class=\"" + std::to_string(i) + "xx\"}", answers_[i]);
    put("http_requests_total", seen.requests);
    put("http_refused_total", seen.refused);
    put("http_malformed_total", seen.malformed);
    put("http_connections", seen.connections);
    put("http_accept_pauses_total", seen.accept_pauses);
    put("handlers_running", pool.busy);
    put("handlers_queued", pool.queued);
    response.add_header("Content-Type", "text/plain; version=0.0.4");
    (void)response.send(text);
  }

  const std::unique_ptr<NotesStore> store_;
  weft::FiberPool& pool_;
  std::array<std::atomic<std::uint64_t>, 6> answers_{};
};

int fail(const char* what, const std::error_code& error) {
  std::fprintf(stderr, "rest_service: %s: %s\n", what, error.message().c_str());
  return 1;
}

int serve(const Options& options) {
  // Before anybody can know that we are there.
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
    if (!options.certificate.empty() && secrets.reload()) std::puts("the old certificate stays");
#endif
  }
  const bool in_time = server.shutdown(weft::Deadline::after(std::chrono::seconds(10)));
  std::printf("%s\n", in_time ? "all is answered" : "some requests took too long");
  return loop.join() ? 1 : 0;
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
