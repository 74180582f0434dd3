// Closes a channel when its last sender has finished.
#pragma once

#include <memory>
#include <weft/channel.hpp>

namespace weft {

// Closes its channel when the last copy of the ChannelCloser is destroyed. If each producer holds a
// copy, receivers see the end of the channel after all producers have finished:
//
//   Channel<int> jobs;
//   {
//     const ChannelCloser closer(jobs);
//     for (int i = 0; i < 4; ++i) group.spawn([&jobs, closer] { produce(jobs); });
//   }
//
// Context: fibers and plain threads; only one caller at a time may use a copy. No call parks.
// Ordering: the close synchronizes as Channel::close() does.
// Lifetime: the channel must outlive all copies.
template <class T>
class ChannelCloser {
 public:
  // Creates the first copy; the release of the last copy closes `channel`.
  // Throws: std::bad_alloc; in this case, the channel is closed.
  explicit ChannelCloser(Channel<T>& channel)
      : channel_(&channel, [](Channel<T>* closed) noexcept { closed->close(); }) {}

  // Releases this copy early. The release of the last copy closes the channel.
  void release() noexcept { channel_.reset(); }

 private:
  std::shared_ptr<Channel<T>> channel_;
};

}  // namespace weft
