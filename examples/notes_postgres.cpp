// libpq on fibers: its calls that do not block, and weft::io::Watch for the waits between them.
#include <libpq-fe.h>

#include <initializer_list>
#include <utility>
#include <weft/channel.hpp>
#include <weft/io.hpp>

#include "notes_store.hpp"

namespace {

using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;
using weft::io::Ready;
using weft::io::Watch;

void wait(Watch& watch, Ready what, const weft::Until& until) {
  if (const auto error = watch.wait(what, until).error) throw StoreError(error.message());
}

// One session with the server. Whoever gives up in the middle of a query ends it.
class Session {
 public:
  Session(const std::string& where, const weft::Until& until)
      : raw_(PQconnectStart(where.c_str()), &PQfinish) {
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
      if (PQstatus(raw_.get()) == CONNECTION_BAD || next == PGRES_POLLING_FAILED) fail();
      // The socket may be another one after each step.
      auto [watch, error] = Watch::borrow(PQsocket(raw_.get()));
      if (error) throw StoreError(error.message());
      wait(watch, next == PGRES_POLLING_READING ? Ready::read : Ready::write, until);
      (void)watch.release();
      next = PQconnectPoll(raw_.get());
    }
    (void)PQsetnonblocking(raw_.get(), 1);
    watch_ = Watch::borrow(PQsocket(raw_.get())).value;
  }

  Answer ask(const char* query, std::initializer_list<std::string> values,
             const weft::Until& until) {
    std::vector<const char*> texts;
    for (const std::string& value : values) texts.push_back(value.c_str());
    if (PQsendQueryParams(raw_.get(), query, static_cast<int>(texts.size()), nullptr, texts.data(),
                          nullptr, nullptr, 0) == 0) {
      fail();
    }
    while (const int left = PQflush(raw_.get())) {
      if (left < 0) fail();
      wait(watch_, Ready::either, until);
      if (PQconsumeInput(raw_.get()) == 0) fail();
    }
    Answer last(nullptr, &PQclear);
    for (;;) {
      while (PQisBusy(raw_.get()) != 0) {
        wait(watch_, Ready::read, until);
        if (PQconsumeInput(raw_.get()) == 0) fail();
      }
      Answer next(PQgetResult(raw_.get()), &PQclear);
      if (next == nullptr) break;
      last = std::move(next);
    }
    const auto status = PQresultStatus(last.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail();
    return last;
  }

 private:
  [[noreturn]] void fail() { throw StoreError(PQerrorMessage(raw_.get())); }

  std::unique_ptr<PGconn, decltype(&PQfinish)> raw_;
  Watch watch_;  // Ends before the connection closes its socket.
};

// A channel of sessions, empty ones at first, is a pool with a cap: who finds none waits.
class PostgresStore final : public NotesStore {
 public:
  PostgresStore(std::string where, std::size_t connections)
      : where_(std::move(where)), sessions_(connections) {
    for (std::size_t i = 0; i < connections; ++i) (void)sessions_.send(nullptr);
  }

  std::int64_t add(const std::string& text, const weft::Until& until) override {
    const auto answer = ask("INSERT INTO notes (text) VALUES ($1) RETURNING id", {text}, until);
    return std::stoll(PQgetvalue(answer.get(), 0, 0));
  }
  std::vector<Note> list(const weft::Until& until) override {
    return notes_of(ask("SELECT id, text FROM notes ORDER BY id DESC LIMIT 100", {}, until));
  }
  std::vector<Note> find(std::int64_t id, const weft::Until& until) override {
    return notes_of(ask("SELECT id, text FROM notes WHERE id = $1", {std::to_string(id)}, until));
  }
  bool remove(std::int64_t id, const weft::Until& until) override {
    const auto answer = ask("DELETE FROM notes WHERE id = $1", {std::to_string(id)}, until);
    return std::string_view(PQcmdTuples(answer.get())) == "1";
  }

 private:
  Answer ask(const char* query, std::initializer_list<std::string> values,
             const weft::Until& until) {
    std::optional<std::unique_ptr<Session>> session;
    if (sessions_.receive_until(session, until) != weft::ChannelStatus::ok) {
      throw StoreError("no connection is free");
    }
    try {
      if (*session == nullptr) {
        *session = std::make_unique<Session>(where_, until);
        (void)(*session)->ask(
            "CREATE TABLE IF NOT EXISTS notes (id BIGSERIAL PRIMARY KEY, text TEXT NOT NULL)", {},
            until);
      }
      auto answer = (*session)->ask(query, values, until);
      (void)sessions_.send(std::move(*session));
      return answer;
    } catch (...) {
      // Whatever state it is in, nobody else gets it; its place is given back.
      session->reset();
      (void)sessions_.send(nullptr);
      throw;
    }
  }

  static std::vector<Note> notes_of(const Answer& answer) {
    std::vector<Note> notes;
    for (int row = 0; row < PQntuples(answer.get()); ++row) {
      notes.push_back(
          {std::stoll(PQgetvalue(answer.get(), row, 0)), PQgetvalue(answer.get(), row, 1)});
    }
    return notes;
  }

  const std::string where_;
  weft::Channel<std::unique_ptr<Session>> sessions_;
};

}  // namespace

std::unique_ptr<NotesStore> make_postgres_store(const std::string& where, std::size_t connections) {
  return std::make_unique<PostgresStore>(where, connections);
}
