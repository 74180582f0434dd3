// Stores notes in PostgreSQL, through libpq on fibers.
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "notes_store.hpp"
#include "postgres_pool.hpp"

namespace {

// The lock is needed: if two sessions create a table at once, one of them gets an error.
const std::vector<Query> kFirst = {
    {"SELECT pg_advisory_xact_lock(1)"},
    {"CREATE TABLE IF NOT EXISTS notes (id BIGSERIAL PRIMARY KEY, text TEXT NOT NULL)"}};

class PostgresStore final : public NotesStore {
 public:
  PostgresStore(const std::string& where, std::size_t connections)
      : pool_(where, connections, kFirst) {}

  std::int64_t add(const std::string& text, const weft::Until& until) override {
    const auto answer = ask({"INSERT INTO notes (text) VALUES ($1) RETURNING id", {text}}, until);
    return std::stoll(PQgetvalue(answer.get(), 0, 0));
  }
  std::vector<Note> list(const weft::Until& until) override {
    return notes_of(ask({"SELECT id, text FROM notes ORDER BY id DESC LIMIT 100"}, until));
  }
  std::vector<Note> find(std::int64_t id, const weft::Until& until) override {
    return notes_of(ask({"SELECT id, text FROM notes WHERE id = $1", {std::to_string(id)}}, until));
  }
  bool remove(std::int64_t id, const weft::Until& until) override {
    const auto answer = ask({"DELETE FROM notes WHERE id = $1", {std::to_string(id)}}, until);
    return std::string_view(PQcmdTuples(answer.get())) == "1";
  }

 private:
  PostgresSession::Answer ask(const Query& query, const weft::Until& until) {
    try {
      return pool_.with_session(
          until, [&](PostgresSession& session) { return session.ask(query, until); });
    } catch (const PostgresError& error) {
      throw StoreError(error.what());
    }
  }

  static std::vector<Note> notes_of(const PostgresSession::Answer& answer) {
    std::vector<Note> notes;
    for (int row = 0; row < PQntuples(answer.get()); ++row) {
      notes.push_back(
          {std::stoll(PQgetvalue(answer.get(), row, 0)), PQgetvalue(answer.get(), row, 1)});
    }
    return notes;
  }

  PostgresPool pool_;
};

}  // namespace

std::unique_ptr<NotesStore> make_postgres_store(const std::string& where, std::size_t connections) {
  return std::make_unique<PostgresStore>(where, connections);
}
