#include "pool/core/listing.hpp"

#include <weft/detail/guard.hpp>
#include <weft/detail/simulated_process.hpp>

#include "pool/core/pool_core.hpp"

namespace weft::pool {

constinit detail::ThreadMutex Listing::mutex_;
constinit Listing* Listing::first_ = nullptr;
constinit Listing* Listing::last_ = nullptr;

constinit Listing::Taken* Listing::taken_ = nullptr;

const detail::HeldOverForks<Listing::mutex_, detail::ForkHandlers::Locks::outer>
    Listing::held_over_forks_;

Listing::Taken& Listing::taken() {
  if (taken_ == nullptr) taken_ = new Taken;
  return *taken_;
}

Listing::Listing(PoolCore& core) : core_(core), process_(detail::simulated_process()) {
  const detail::Guard lock(mutex_);
  const std::string_view name = core.options().name;
  while (!name.empty() && !taken().emplace(process_, name, ++number_).second) {
  }
  previous_ = last_;
  (previous_ == nullptr ? first_ : previous_->next_) = this;
  last_ = this;
}

Listing::~Listing() {
  const detail::Guard lock(mutex_);
  if (number_ != 0) taken().erase({process_, core_.options().name, number_});
  (previous_ == nullptr ? first_ : previous_->next_) = next_;
  (next_ == nullptr ? last_ : next_->previous_) = previous_;
}

void Listing::visit_all(const std::function<void(PoolCore&)>& visit) {
  const std::uint64_t process = detail::simulated_process();
  const detail::Guard lock(mutex_);
  for (const Listing* each = first_; each != nullptr; each = each->next_) {
    if (each->forks_ == detail::forks() && each->process_ == process) visit(each->core_);
  }
}

}  // namespace weft::pool
