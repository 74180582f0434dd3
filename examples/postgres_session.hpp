// libpq on fibers: its calls that do not block, weft::io::Watch for the waits between them, and a
// pool of sessions with a cap. All calls park; from fibers.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/error.hpp>
#include <weft/io.hpp>

// What the server says, or that it does not answer in time.
struct PostgresError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Query {
  const char* text;
  std::vector<std::string> values = {};
};

class PostgresSession {
 public:
  using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

  PostgresSession(const std::string& where, const weft::Until& until)
      : raw_(PQconnectStart(where.c_str()), &PQfinish) {
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
      if (PQstatus(raw_.get()) == CONNECTION_BAD || next == PGRES_POLLING_FAILED) fail();
      watch();  // The socket may be another one after each step.
      if (!wait(next == PGRES_POLLING_READING ? Ready::read : Ready::write, until)) {
        throw PostgresError("no connection in time");
      }
      (void)watch_.release();
      next = PQconnectPoll(raw_.get());
    }
    watch();
    if (PQsetnonblocking(raw_.get(), 1) != 0 || PQenterPipelineMode(raw_.get()) == 0) fail();
  }

  // The answers, in the order of the queries, which travel in one round trip. When one fails, those
  // behind it are not done. When `until` comes first, the server is asked to cancel, and the
  // session can go on.
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

  // False after a call that has left it in the middle of something.
  [[nodiscard]] bool is_idle() const { return is_idle_; }

 private:
  using Ready = weft::io::Ready;

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
    for (const std::string& value : query.values) texts.push_back(value.c_str());
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
      if (answer != nullptr) answers.push_back(std::move(answer));  // Null ends those of a query.
    }
  }

  // By a connection of its own, which libpq waits for: not on a worker.
  void cancel(std::vector<Answer>& answers) {
    std::unique_ptr<PGcancel, decltype(&PQfreeCancel)> request(PQgetCancel(raw_.get()),
                                                               &PQfreeCancel);
    weft::blocking([&] {
      char reason[256];
      return PQcancel(request.get(), reason, sizeof reason);
    });
    if (!receive(answers, std::chrono::seconds(5))) throw PostgresError("no answer to a cancel");
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> raw_;
  weft::io::Watch watch_;  // Ends before the connection closes its socket.
  bool is_idle_ = true;
};

// A channel of sessions, empty ones at first, is a pool with a cap: who finds none waits.
class PostgresPool {
 public:
  // Each new session is asked `first`, in one round trip, and so in one transaction.
  PostgresPool(std::string where, std::size_t connections, std::vector<Query> first)
      : where_(std::move(where)), first_(std::move(first)), idle_(connections) {
    for (std::size_t i = 0; i < connections; ++i) (void)idle_.send(nullptr);
  }

  // What `use` returns, which is called with a session that nobody else has.
  template <class Use>
  auto with_session(const weft::Until& until, Use use) {
    std::optional<std::unique_ptr<PostgresSession>> session;
    if (idle_.receive_until(session, until) != weft::ChannelStatus::ok) {
      throw PostgresError("no connection is free");
    }
    const GiveBack give_back{idle_, *session};
    if (*session == nullptr) {
      auto fresh = std::make_unique<PostgresSession>(where_, until);
      (void)fresh->ask(first_, until);
      *session = std::move(fresh);
    }
    return use(**session);
  }

 private:
  struct GiveBack {
    ~GiveBack() {
      if (session != nullptr && !session->is_idle()) session.reset();
      (void)idle.send(std::move(session));  // There is room for all.
    }
    weft::Channel<std::unique_ptr<PostgresSession>>& idle;
    std::unique_ptr<PostgresSession>& session;
  };

  const std::string where_;
  const std::vector<Query> first_;
  weft::Channel<std::unique_ptr<PostgresSession>> idle_;
};
