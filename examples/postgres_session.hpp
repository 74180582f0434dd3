// libpq on fibers: its calls that do not block, and weft::io::Watch for the waits between them. All
// calls park; from fibers.
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

// The server's message, or that it does not answer in time.
struct PostgresError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Query {
  const char* text;
  std::vector<std::string> values = {};  // Without NUL, which PostgreSQL's texts cannot have.
};

// The threads for calls to libpq that wait: it looks up names, and asks for a cancel. Never
// destroyed, as a call that hangs would keep the program from its end.
inline weft::BlockingGroup& libpq_threads() {
  static auto& group = *new weft::BlockingGroup({.name = "libpq"});
  return group;
}

// Makes a call on one of these. It owns all that it uses: it may go on when `until` has ended the
// wait.
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
      watch();  // The socket may be another one after each step.
      if (!wait(next == PGRES_POLLING_READING ? Ready::read : Ready::write, until)) {
        throw PostgresError("no connection in time");
      }
      (void)watch_.release();
      // It may go on to the next host.
      next = call_aside([raw = raw_] { return PQconnectPoll(raw.get()); }, until);
    }
    watch();
    if (PQsetnonblocking(raw_.get(), 1) != 0 || PQenterPipelineMode(raw_.get()) == 0) fail();
  }

  // The answers, in the order of the queries, which travel in one round trip. When one fails, later
  // ones are not done. When `until` comes first, the server is asked to cancel, for 3 s at most,
  // and the session can go on.
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

  // False after a call that has left it in the middle of something, a transaction, say.
  [[nodiscard]] bool is_idle() const {
    return is_idle_ && PQtransactionStatus(raw_.get()) == PQTRANS_IDLE;
  }

 private:
  using Ready = weft::io::Ready;
  using Raw = std::shared_ptr<PGconn>;  // Calls that were given up share it.

  [[noreturn]] void fail() { throw PostgresError(PQerrorMessage(raw_.get())); }

  void watch() {
    auto [watch, error] = weft::io::Watch::borrow(PQsocket(raw_.get()));
    if (error) throw PostgresError(error.message());
    watch_ = std::move(watch);
  }

  // False: `until` came first.
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

  // The rest of the answers, up to the end of the round trip. False: `until` came first.
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

  // By a connection of its own, which libpq waits for. Without an answer the session is lost.
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
  weft::io::Watch watch_;  // Ends before the connection closes its socket.
  bool is_idle_ = true;
};
