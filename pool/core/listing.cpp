#include "pool/core/listing.hpp"

#include <set>
#include <string_view>
#include <utility>
#include <weft/detail/fork.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "pool/core/pool_core.hpp"

namespace weft::pool {
namespace {

// Held briefly, and never over a switch or over another thread's fork. It also guards all links.
constinit detail::ThreadMutex list_mutex;
constinit Listing* first_listed WEFT_GUARDED_BY(list_mutex) = nullptr;
constinit Listing* last_listed WEFT_GUARDED_BY(list_mutex) = nullptr;
// Counts the forks from the first process to this one.
constinit unsigned forks WEFT_GUARDED_BY(list_mutex) = 0;

// Maps names to the numbers in use. Never destroyed, because a static pool may end later.
auto& taken() WEFT_REQUIRES(list_mutex) {
  static auto& all = *new std::set<std::pair<std::string_view, unsigned>>;
  return all;
}

void hold_over_forks() {
  // Not analyzed: one function locks what another unlocks.
  [[maybe_unused]] static const bool is_held = [] {
    detail::at_fork([]() WEFT_NOT_ANALYZED { list_mutex.lock(); },
                    []() WEFT_NOT_ANALYZED { list_mutex.unlock(); },
                    []() WEFT_NOT_ANALYZED {
                      ++forks;
                      list_mutex.unlock();
                    });
    return true;
  }();
}

}  // namespace

Listing::Listing(PoolCore& core) : core_(core) {
  hold_over_forks();
  const detail::Guard lock(list_mutex);
  const std::string_view name = core.options().name;
  while (!name.empty() && !taken().emplace(name, ++number_).second) {
  }
  forks_ = forks;
  previous_ = last_listed;
  (previous_ == nullptr ? first_listed : previous_->next_) = this;
  last_listed = this;
}

Listing::~Listing() {
  const detail::Guard lock(list_mutex);
  if (number_ != 0) taken().erase({core_.options().name, number_});
  (previous_ == nullptr ? first_listed : previous_->next_) = next_;
  (next_ == nullptr ? last_listed : next_->previous_) = previous_;
}

void Listing::visit_all(const std::function<void(PoolCore&)>& visit) {
  const detail::Guard lock(list_mutex);
  for (const Listing* each = first_listed; each != nullptr; each = each->next_) {
    if (each->forks_ == forks) visit(each->core_);
  }
}

}  // namespace weft::pool
