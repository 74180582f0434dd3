// Closes a channel when its last sender has finished.
#pragma once

#include <memory>
#include <weft/channel.hpp>

namespace weft {

// Closes its channel at the end of its scope; if there are copies, the last copy does. Each of
// several producers holds a copy, so receivers see the end after all producers have finished:
//
//   Channel<int> jobs;
//   {
//     const ChannelCloser closer(jobs);
//     for (int i = 0; i < 4; ++i) group.spawn([&jobs, closer] { produce(jobs); });
//   }
//
// Context: fibers and plain threads; each copy by one caller at a time. No call parks.
// Ordering: the close synchronizes as Channel::close().
// Lifetime: the channel must outlive all copies.
template <class T>
class ChannelCloser {
 public:
  // Refers to `channel`.
  // Throws: std::bad_alloc; the channel is then closed.
  explicit ChannelCloser(Channel<T>& channel)
      : channel_(&channel, [](Channel<T>* closed) noexcept { closed->close(); }) {}

  // Gives this copy up early; the last copy closes the channel.
  void release() noexcept { channel_.reset(); }

 private:
  std::shared_ptr<Channel<T>> channel_;
};

}  // namespace weft
