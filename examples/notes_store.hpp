// Declares the store for the notes of rest_service.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/until.hpp>

struct Note {
  std::int64_t id = 0;
  std::string text;
};

// Thrown if the store does not answer in time.
struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Many fibers may use the store at once. A call may park until `until` ends its wait.
class NotesStore {
 public:
  virtual ~NotesStore() = default;
  virtual std::int64_t add(const std::string& text, const weft::Until& until) = 0;
  // Returns the newest notes first, at most a hundred.
  virtual std::vector<Note> list(const weft::Until& until) = 0;
  // Returns the note with this number, or an empty list.
  virtual std::vector<Note> find(std::int64_t id, const weft::Until& until) = 0;
  virtual bool remove(std::int64_t id, const weft::Until& until) = 0;
};

// Makes a store in memory, which lasts as long as the process.
std::unique_ptr<NotesStore> make_memory_store();
// Makes a store in PostgreSQL, with at most `connections`, which are opened as needed. Returns null
// if this program was built without libpq.
std::unique_ptr<NotesStore> make_postgres_store(const std::string& where, std::size_t connections);
