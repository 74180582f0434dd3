// Closes a channel when the last of its senders is done.
#pragma once

#include <memory>
#include <weft/channel.hpp>

namespace weft {

// Closes its channel at the end of the scope, however that is left; with copies, at the end of the
// last one. So each of several producers holds a copy, and the receivers see the end after all
// have ended:
//
//   Channel<int> jobs;
//   {
//     const ChannelCloser closer(jobs);
//     for (int i = 0; i < 4; ++i) group.spawn([&jobs, closer] { produce(jobs); });
//   }
//
// The channel must outlive all copies. Copies may be used by different callers at the same time,
// fibers and plain threads; one copy by one caller at a time. The destructor never parks, and
// synchronizes as Channel::close().
template <class T>
class ChannelCloser {
 public:
  // Never parks. Throws std::bad_alloc; the channel is closed then.
  explicit ChannelCloser(Channel<T>& channel)
      : channel_(&channel, [](Channel<T>* closed) noexcept { closed->close(); }) {}

  // Gives this copy up before the end of its scope: closes the channel if there is no other one.
  // Never parks.
  void release() noexcept { channel_.reset(); }

 private:
  std::shared_ptr<Channel<T>> channel_;
};

}  // namespace weft
