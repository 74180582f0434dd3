// Where the notes of rest_service are kept.
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

// The store does not answer, or not in time.
struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Used by many fibers at once; all calls may park, until the limit of their request.
class NotesStore {
 public:
  virtual ~NotesStore() = default;
  virtual std::int64_t add(const std::string& text, const weft::Until& until) = 0;
  // The newest first, a hundred at most.
  virtual std::vector<Note> list(const weft::Until& until) = 0;
  // All or none with this number.
  virtual std::vector<Note> find(std::int64_t id, const weft::Until& until) = 0;
  virtual bool remove(std::int64_t id, const weft::Until& until) = 0;
};

// In memory, as long as the process.
std::unique_ptr<NotesStore> make_memory_store();
// In PostgreSQL, by at most `connections`, which are made as they are needed. Null: this program
// was built without libpq.
std::unique_ptr<NotesStore> make_postgres_store(const std::string& where, std::size_t connections);
