// Uses libpq on fibers: with its calls that do not block, and weft::io::Watch for the waits between
// them. Fibers make the calls, which park.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/blocking_group.hpp>
#include <weft/error.hpp>
#include <weft/io.hpp>

// Carries the server's message, or reports that the server did not answer in time.
struct PostgresError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Query {
  const char* text;
  std::vector<std::string> values = {};  // Without NUL bytes, which PostgreSQL rejects.
};

// Returns the threads for blocking calls of libpq: name lookups and cancel requests. They are never
// destroyed, because a call that hangs would delay the end of the program.
inline weft::BlockingGroup& libpq_threads() {
  static auto& group = *new weft::BlockingGroup({.name = "libpq"});
  return group;
}

// Makes a call on one of these threads. The call owns all that it uses, because it may continue
// after `until` has ended the wait.
template <class F>
auto call_aside(F call, const weft::Until& until) {
  auto made = libpq_threads().run(std::move(call), until);
  if (made.error) throw PostgresError(made.error.message());
  return std::move(made.value);
}

class PostgresSession {
 public:
  using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

  PostgresSession(const std::string& where, const weft::Until& until)
      : raw_(call_aside([where] { return Raw(PQconnectStart(where.c_str()), &PQfinish); }, until)) {
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
      if (PQstatus(raw_.get()) == CONNECTION_BAD || next == PGRES_POLLING_FAILED) fail();
      watch();  // Each step may replace the socket.
      if (!wait(next == PGRES_POLLING_READING ? Ready::read : Ready::write, until)) {
        throw PostgresError("no connection in time");
      }
      (void)watch_.release();
      // The call may block, because it may try the next host.
      next = call_aside([raw = raw_] { return PQconnectPoll(raw.get()); }, until);
    }
    watch();
    if (PQsetnonblocking(raw_.get(), 1) != 0 || PQenterPipelineMode(raw_.get()) == 0) fail();
  }

  // Sends the queries in one round trip; returns the answers in their order. If a query fails,
  // later queries are skipped. If `until` ends first, asks the server to cancel for at most 3 s,
  // and the session stays usable.
  std::vector<Answer> ask(std::span<const Query> queries, const weft::Until& until) {
    is_idle_ = false;
    for (const Query& query : queries) send(query);
    if (PQpipelineSync(raw_.get()) == 0) fail();
    std::vector<Answer> answers;
    const bool in_time = receive(answers, until);
    if (!in_time) cancel(answers);
    is_idle_ = true;
    for (const Answer& answer : answers) {
      const auto status = PQresultStatus(answer.get());
      if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) continue;
      throw PostgresError(in_time ? PQresultErrorMessage(answer.get()) : "the query was cancelled");
    }
    return answers;
  }
  Answer ask(const Query& query, const weft::Until& until) {
    return std::move(ask(std::span(&query, 1), until).front());
  }

  // Returns false if the last call left the session busy, for instance in a transaction.
  [[nodiscard]] bool is_idle() const {
    return is_idle_ && PQtransactionStatus(raw_.get()) == PQTRANS_IDLE;
  }

 private:
  using Ready = weft::io::Ready;
  using Raw = std::shared_ptr<PGconn>;  // Abandoned calls share it.

  [[noreturn]] void fail() { throw PostgresError(PQerrorMessage(raw_.get())); }

  void watch() {
    auto [watch, error] = weft::io::Watch::borrow(PQsocket(raw_.get()));
    if (error) throw PostgresError(error.message());
    watch_ = std::move(watch);
  }

  // Returns false if `until` ended first.
  bool wait(Ready what, const weft::Until& until) {
    const auto error = watch_.wait(what, until).error;
    if (error == weft::Errc::timed_out || error == weft::Errc::cancelled) return false;
    if (error) throw PostgresError(error.message());
    return true;
  }

  void send(const Query& query) {
    std::vector<const char*> texts;
    for (const std::string& value : query.values) {
      if (value.find('\0') != std::string::npos) throw PostgresError("a value with a NUL");
      texts.push_back(value.c_str());
    }
    const int count = static_cast<int>(texts.size());
    if (PQsendQueryParams(raw_.get(), query.text, count, nullptr, texts.data(), nullptr, nullptr,
                          0) == 0) {
      fail();
    }
  }

  // Receives the other answers of the round trip. Returns false if `until` ended first.
  bool receive(std::vector<Answer>& answers, const weft::Until& until) {
    for (;;) {
      const int unsent = PQflush(raw_.get());
      if (unsent < 0) fail();
      if (unsent > 0 || PQisBusy(raw_.get()) != 0) {
        if (!wait(unsent > 0 ? Ready::either : Ready::read, until)) return false;
        if (PQconsumeInput(raw_.get()) == 0) fail();
        continue;
      }
      Answer answer(PQgetResult(raw_.get()), &PQclear);
      if (PQresultStatus(answer.get()) == PGRES_PIPELINE_SYNC) return true;
      // Null ends the answers of a query.
      if (answer != nullptr) answers.push_back(std::move(answer));
    }
  }

  // Cancels through a separate connection, on which libpq waits. A missing answer ends the session.
  void cancel(std::vector<Answer>& answers) {
    const weft::Until limit = std::chrono::seconds(3);
    const std::shared_ptr<PGcancel> request(PQgetCancel(raw_.get()), &PQfreeCancel);
    (void)call_aside(
        [request] {
          char reason[256];
          return PQcancel(request.get(), reason, sizeof reason);
        },
        limit);
    if (!receive(answers, limit)) throw PostgresError("no answer to a cancel");
  }

  Raw raw_;
  weft::io::Watch watch_;  // Destroyed before the connection closes its socket.
  bool is_idle_ = true;
};
