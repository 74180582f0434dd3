// Makes the routes of rest_service, for any store.
#pragma once

#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/pool.hpp>

#include "notes_page.hpp"
#include "notes_store.hpp"

using nlohmann::json;
using weft::http::Request;
using weft::http::Response;

inline void answer(Response& response, int status, const json& body) {
  response.set_status(status);
  response.add_header("Content-Type", "application/json");
  (void)response.send(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

inline json to_json(const Note& note) { return {{"id", note.id}, {"text", note.text}}; }

// Returns the id in the path, or 0, which no note has, if the text is not a number.
inline std::int64_t id_of(const Request& request) {
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
    // A failure of the store is temporary and not the client's fault, so the answer is 503.
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
  const weft::http::Server* server = nullptr;  // The server whose metrics are shown.

 private:
  void add(Request& request, Response& response) {
    const auto [body, error] = request.read_all();
    if (error) return;  // The server sends the error.
    const json note = json::parse(body, nullptr, false);
    const json text = note.is_object() ? note.value("text", json()) : json();
    // Some stores cannot hold a zero byte.
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
