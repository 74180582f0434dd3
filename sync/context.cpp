#include <weft/context.hpp>

#include <algorithm>
#include <memory>

namespace weft {

namespace detail {

namespace {

struct CarriedContext : Context {
  explicit CarriedContext(ContextCore& core) noexcept : Context(core) {}
};

// A core, and the Context through which fibers with this core access the core.
struct WholeCore final : ContextCore {
  WholeCore(ContextCore* parent, Deadline deadline)
      : ContextCore(context, &destroy, parent, deadline), context(*this) {}

  // If a child holds the last reference to its parent, the parent is destroyed here. The child's
  // destructor does not destroy it, because a chain of scopes may be long.
  static void destroy(SharedContext& last) noexcept {
    SharedContext* core = &last;
    while (core != nullptr) {
      auto* const whole = static_cast<WholeCore*>(core);
      ContextShare parent = whole->take_parent();
      delete whole;
      core = parent.leave();
    }
  }

  const CarriedContext context;
};

}  // namespace

ContextShare ContextCore::make(ContextCore* parent, Deadline deadline) {
  if (parent != nullptr) deadline = std::min(deadline, parent->deadline_);
  auto* const core = new WholeCore(parent, deadline);
  ContextShare share(*core);
  if (parent == nullptr) return share;
  // A parent that has already ended ends the child here.
  if (const std::error_code error = parent->error()) core->cancel(error, parent->cause());
  core->follow_parent_.add(parent->token_, FollowParent{core});
  return share;
}

ContextCore::ContextCore(const Context& context, Destroy destroy, ContextCore* parent,
                         Deadline deadline)
    : SharedContext(context, destroy),
      parent_share_(parent == nullptr ? ContextShare() : ContextShare(*parent)),
      parent_(parent),
      deadline_(deadline),
      token_(source_.get_token()) {}

ContextCore::~ContextCore() {
  const Value* value = values_.load(acquire);  // [values]
  while (value != nullptr) delete std::exchange(value, value->older);
}

void ContextCore::end() noexcept {
  // If another call is about to set the clock, that call also stops the clock.
  if (clock_state_.exchange(ClockState::ended, acq_rel) == ClockState::set) {  // [clock]
    (void)clock_.stop();
  }
  (void)cancel(Errc::cancelled, nullptr);
  follow_parent_.remove();
}

bool ContextCore::cancel(std::error_code error, std::exception_ptr cause) noexcept {
  bool decides = false;
  {
    const detail::SpinGuard guard(lock_);
    if (error_) return false;
    // A deadline that has passed came first, even if no caller has noticed it.
    decides = !deadline_.passed();
    error_ = decides ? error : make_error_code(Errc::timed_out);
    if (decides) cause_.swap(cause);
  }
  (void)source_.request_stop();
  return decides;
}

std::error_code ContextCore::error() noexcept {
  if (deadline_.passed()) (void)cancel(Errc::timed_out, nullptr);
  const detail::SpinGuard guard(lock_);
  return error_;
}

std::exception_ptr ContextCore::cause() noexcept {
  const detail::SpinGuard guard(lock_);
  return cause_;
}

void ContextCore::set_clock() {
  ClockState state = ClockState::none;
  // Relaxed: only one call sets the clock, and publishes it below.
  if (deadline_.is_never() || clock_state_.load(relaxed) != state ||
      !clock_state_.compare_exchange_strong(state, ClockState::setting, relaxed, relaxed)) {
    return;
  }
  state = ClockState::setting;
  try {
    clock_ = call_at(
        deadline_, [this, kept = ContextShare(*this)] { (void)cancel(Errc::timed_out, nullptr); });
  } catch (...) {
    // Relaxed: there is no clock.
    (void)clock_state_.compare_exchange_strong(state, ClockState::none, relaxed, relaxed);
    throw;
  }
  if (!clock_state_.compare_exchange_strong(state, ClockState::set, acq_rel, acquire)) {  // [clock]
    (void)clock_.stop();
  }
}

void ContextCore::FollowParent::operator()() const noexcept {
  (void)child->cancel(child->parent_->error(), child->parent_->cause());
}

void ContextCore::add_value(const void* key, std::shared_ptr<const void> value) {
  // Relaxed: a failed exchange loads the newest value again.
  auto* const newest = new Value{key, std::move(value), values_.load(relaxed)};
  while (!values_.compare_exchange_weak(newest->older, newest, release, relaxed)) {  // [values]
  }
}

const void* ContextCore::find_value(const void* key) const noexcept {
  for (const ContextCore* core = this; core != nullptr; core = core->parent_) {
    const Value* value = core->values_.load(acquire);  // [values]
    while (value != nullptr && value->key != key) value = value->older;
    if (value != nullptr) return value->value.get();
  }
  return nullptr;
}

}  // namespace detail

void Context::throw_if_over() const {
  const std::error_code error = status();
  if (!error) return;
  if (const std::exception_ptr cause = this->cause()) std::rethrow_exception(cause);
  throw std::system_error(error, "weft: the Context is over");
}

bool Context::is_within(const Context& other) const noexcept {
  const detail::ContextCore* core = &core_;
  while (core != nullptr && core != &other.core_) core = core->parent();
  return core != nullptr;
}

Until Until::ambient() noexcept {
  const Context* const context = detail::ContextNode::current();
  return context == nullptr ? Until() : context->until();
}

}  // namespace weft
