// A select case that sends a value, and passes the status of the send to the handler.
#pragma once

#include <concepts>
#include <utility>
#include <weft/channel_status.hpp>
#include <weft/detail/select_case.hpp>

namespace weft::detail {

// The handler takes a ChannelStatus, or no argument. A notifier that ends the wait has either
// granted the send or closed the target.
template <class Handler>
class StatusCase : public SelectCase {
 public:
  void handle() override {
    if constexpr (std::invocable<Handler&, ChannelStatus>) {
      handler_(status_);
    } else {
      handler_();
    }
  }

 protected:
  StatusCase(SpinLock* lock, WaitList* list, void* slot, Handler handler)
      : SelectCase(lock, list, slot), handler_(std::move(handler)) {}

  // Stores the status of an attempt to send. Returns whether this status completes the case.
  [[nodiscard]] bool note(ChannelStatus status) noexcept {
    status_ = status;
    return status != ChannelStatus::would_wait;
  }

 private:
  bool conclude() noexcept override {
    status_ = waiter().granted ? ChannelStatus::ok : ChannelStatus::closed;
    return true;
  }

  ChannelStatus status_ = ChannelStatus::would_wait;
  Handler handler_;
};

}  // namespace weft::detail
