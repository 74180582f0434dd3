#include "pool/core/listing.hpp"

#include <mutex>
#include <weft/detail/fork.hpp>

#include "pool/core/pool_core.hpp"

namespace weft::pool {
namespace {

// Held for short, and over no switch, nor over another thread's fork. Guards the next three, and
// all links.
constinit std::mutex list_mutex;
constinit Listing* first_listed = nullptr;
constinit Listing* last_listed = nullptr;
constinit unsigned forks = 0;  // From the first process to this one.

void hold_over_forks() {
  [[maybe_unused]] static const bool is_held = [] {
    detail::at_fork([] { list_mutex.lock(); }, [] { list_mutex.unlock(); },
                    [] {
                      ++forks;
                      list_mutex.unlock();
                    });
    return true;
  }();
}

}  // namespace

Listing::Listing(PoolCore& core) : core_(core) {
  hold_over_forks();
  const std::lock_guard lock(list_mutex);
  forks_ = forks;
  previous_ = last_listed;
  (previous_ == nullptr ? first_listed : previous_->next_) = this;
  last_listed = this;
}

Listing::~Listing() {
  const std::lock_guard lock(list_mutex);
  (previous_ == nullptr ? first_listed : previous_->next_) = next_;
  (next_ == nullptr ? last_listed : next_->previous_) = previous_;
}

void Listing::visit_all(const std::function<void(PoolCore&)>& visit) {
  const std::lock_guard lock(list_mutex);
  for (const Listing* each = first_listed; each != nullptr; each = each->next_) {
    if (each->forks_ == forks) visit(each->core_);
  }
}

}  // namespace weft::pool
