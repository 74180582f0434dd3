#include "pool/core/listing.hpp"

#include <mutex>
#include <weft/detail/fork.hpp>

#include "pool/core/pool_core.hpp"

namespace weft::pool {
namespace {

// Held for short, and over no switch. Guards the next two, and all links.
constinit std::mutex list_mutex;
constinit Listing* first_listed = nullptr;
constinit Listing* last_listed = nullptr;

void hold_over_forks() {
  [[maybe_unused]] static const bool is_held = [] {
    detail::hold_over_forks([] { list_mutex.lock(); }, [] { list_mutex.unlock(); });
    return true;
  }();
}

}  // namespace

Listing::Listing(PoolCore& core) : core_(core), process_(detail::process_number()) {
  hold_over_forks();
  const std::lock_guard lock(list_mutex);
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
  const int process = detail::process_number();
  for (const Listing* each = first_listed; each != nullptr; each = each->next_) {
    if (each->process_ == process) visit(each->core_);
  }
}

}  // namespace weft::pool
