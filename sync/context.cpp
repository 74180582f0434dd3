#include <weft/context.hpp>

#include <algorithm>

namespace weft {

namespace detail {

bool CancelState::cancel(std::error_code error, std::exception_ptr cause) noexcept {
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

std::error_code CancelState::error() noexcept {
  if (deadline_.passed()) (void)cancel(Errc::timed_out, nullptr);
  const detail::SpinGuard guard(lock_);
  return error_;
}

std::exception_ptr CancelState::cause() noexcept {
  const detail::SpinGuard guard(lock_);
  return cause_;
}

}  // namespace detail

Context::Context(const Context* parent, Deadline deadline)
    : parent_(parent),
      deadline_(parent == nullptr ? deadline : std::min(deadline, parent->deadline_)),
      state_(std::make_shared<detail::CancelState>(deadline_)),
      token_(state_->token()) {
  if (parent == nullptr) return;
  // A parent that has ended already ends the child right here.
  if (parent->is_over()) state_->cancel(parent->status(), parent->cause());
  follow_parent_.add(parent->token_, FollowParent{parent->state_, state_});
}

Context::~Context() {
  (void)clock_.stop();
  (void)cancel();
}

Result<void> Context::status() const noexcept { return state_->error(); }

void Context::throw_if_over() const {
  const std::error_code error = status();
  if (!error) return;
  if (const std::exception_ptr cause = this->cause()) std::rethrow_exception(cause);
  throw std::system_error(error, "weft: the Context is over");
}

std::stop_token Context::token() const {
  // Relaxed: only one call sets the clock, and later only the destructor reads it.
  if (deadline_.is_never() || clock_is_set_.exchange(true, detail::relaxed)) return token_;
  try {
    clock_ = call_at(deadline_, [state = state_] { state->cancel(Errc::timed_out, nullptr); });
  } catch (...) {
    clock_is_set_.store(false, detail::relaxed);
    throw;
  }
  return token_;
}

bool Context::is_within(const Context& other) const noexcept {
  const Context* context = this;
  while (context != nullptr && context != &other) context = context->parent_;
  return context != nullptr;
}

const void* Context::find(const void* key) const noexcept {
  for (const Context* context = this; context != nullptr; context = context->parent_) {
    const auto& values = context->values_;
    const auto found = std::find_if(values.rbegin(), values.rend(),
                                    [key](const auto& entry) { return entry.first == key; });
    if (found != values.rend()) return found->second.get();
  }
  return nullptr;
}

namespace detail {

namespace {

const std::uint64_t context_key = new_local_key();

}  // namespace

ContextNode::ContextNode(const Context* context) noexcept
    : LocalScope(context_key), context_(context) {}

const Context* ContextNode::current() noexcept {
  const LocalScope* node = innermost(context_key);
  return node == nullptr ? nullptr : static_cast<const ContextNode*>(node)->context_;
}

}  // namespace detail

Until Until::ambient() noexcept {
  const Context* const context = detail::ContextNode::current();
  return context == nullptr ? Until() : context->until();
}

}  // namespace weft
