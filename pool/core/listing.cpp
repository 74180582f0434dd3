#include "pool/core/listing.hpp"

#include <mutex>
#include <set>
#include <string_view>
#include <utility>
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

// Names with the numbers that are taken. Never destroyed: a static pool may end later.
auto& taken() {
  static auto& all = *new std::set<std::pair<std::string_view, unsigned>>;
  return all;
}

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
  const std::string_view name = core.options().name;
  while (!name.empty() && !taken().emplace(name, ++number_).second) {
  }
  forks_ = forks;
  previous_ = last_listed;
  (previous_ == nullptr ? first_listed : previous_->next_) = this;
  last_listed = this;
}

Listing::~Listing() {
  const std::lock_guard lock(list_mutex);
  if (number_ != 0) taken().erase({core_.options().name, number_});
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
