#include "pool/core/listing.hpp"

#include <mutex>

#include "pool/core/pool_core.hpp"

namespace weft::pool {
namespace {

struct List {
  std::mutex mutex;  // Held for short, and over no switch. Guards the next two, and all links.
  Listing* first = nullptr;
  Listing* last = nullptr;
};
constinit List list;

}  // namespace

Listing::Listing(PoolCore& core) : core_(core) {
  const std::lock_guard lock(list.mutex);
  previous_ = list.last;
  (previous_ == nullptr ? list.first : previous_->next_) = this;
  list.last = this;
}

Listing::~Listing() {
  const std::lock_guard lock(list.mutex);
  (previous_ == nullptr ? list.first : previous_->next_) = next_;
  (next_ == nullptr ? list.last : next_->previous_) = previous_;
}

void Listing::visit_all(const std::function<void(PoolCore&)>& visit) {
  const std::lock_guard lock(list.mutex);
  for (const Listing* each = list.first; each != nullptr; each = each->next_) visit(each->core_);
}

}  // namespace weft::pool
