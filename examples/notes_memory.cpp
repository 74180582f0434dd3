#include <map>
#include <memory>
#include <mutex>
#include <weft/mutex.hpp>

#include "notes_store.hpp"

namespace {

class MemoryStore final : public NotesStore {
 public:
  std::int64_t add(const std::string& text, const weft::Until&) override {
    const std::lock_guard guard(mutex_);
    notes_[++last_] = text;
    return last_;
  }
  std::vector<Note> list(const weft::Until&) override {
    const std::lock_guard guard(mutex_);
    std::vector<Note> all;
    for (auto each = notes_.rbegin(); each != notes_.rend() && all.size() < 100; ++each) {
      all.push_back({each->first, each->second});
    }
    return all;
  }
  std::vector<Note> find(std::int64_t id, const weft::Until&) override {
    const std::lock_guard guard(mutex_);
    const auto found = notes_.find(id);
    if (found == notes_.end()) return {};
    return {{found->first, found->second}};
  }
  bool remove(std::int64_t id, const weft::Until&) override {
    const std::lock_guard guard(mutex_);
    return notes_.erase(id) > 0;
  }

 private:
  weft::Mutex mutex_;  // While a fiber waits for it, its worker runs other fibers.
  std::map<std::int64_t, std::string> notes_;
  std::int64_t last_ = 0;
};

}  // namespace

std::unique_ptr<NotesStore> make_memory_store() { return std::make_unique<MemoryStore>(); }

#ifndef WEFT_HAS_LIBPQ
std::unique_ptr<NotesStore> make_postgres_store(const std::string&, std::size_t) { return nullptr; }
#endif
