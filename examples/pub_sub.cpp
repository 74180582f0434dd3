// A hub delivers every message to all subscribers. Each subscriber has a queue, and chooses what
// happens when the queue is full: the publisher waits, or the hub drops the oldest message or the
// subscriber. Subscribers come and go while messages are in transit; all of them receive the end.
//
//   pub_sub --messages 100000
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

enum class WhenFull { publisher_waits, drop_oldest, drop_subscriber };

template <class Message>
class Hub {
 public:
  // Receives all messages sent from now on, until the subscriber or the hub closes it, or the hub
  // drops the subscriber because the queue is full.
  using Subscription = std::shared_ptr<weft::Channel<Message>>;

  [[nodiscard]] Subscription subscribe(std::size_t places, WhenFull when_full) {
    if (places == 0) throw std::invalid_argument("a queue needs a place");
    auto queue = std::make_shared<weft::Channel<Message>>(places);
    const std::lock_guard guard(mutex_);
    subscribers_.push_back({queue, when_full});
    if (closed_) queue->close();
    return queue;
  }

  void publish(const Message& message) {
    const std::lock_guard guard(mutex_);  // All subscribers get the same order.
    std::erase_if(subscribers_, [&](Subscriber& one) { return !deliver(one, message); });
  }

  // Ends all subscriptions. Subscribers can still receive the messages in their queues.
  void close() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
    for (Subscriber& one : subscribers_) one.queue->close();
    subscribers_.clear();
  }

 private:
  struct Subscriber {
    Subscription queue;
    WhenFull when_full;
  };

  // Returns false if the subscriber has left or must be dropped.
  bool deliver(Subscriber& to, Message message) {
    if (to.when_full == WhenFull::publisher_waits) return to.queue->send(std::move(message));
    for (;;) {
      const auto status = to.queue->try_send(message);
      if (status != weft::ChannelStatus::would_wait) return status == weft::ChannelStatus::ok;
      if (to.when_full == WhenFull::drop_subscriber) {
        to.queue->close();
        return false;
      }
      std::optional<Message> oldest;
      (void)to.queue->try_receive(oldest);
    }
  }

  weft::Mutex mutex_;  // The publisher may wait while it holds this mutex.
  std::vector<Subscriber> subscribers_;
  bool closed_ = false;
};

using Number = std::uint64_t;

// Records the messages of a subscriber that takes a limited number of messages and then leaves.
struct Seen {
  Number count = 0;
  Number last = 0;
  bool in_order = true;
};
Seen read(const Hub<Number>::Subscription& subscription, Number most, unsigned yields) {
  Seen seen;
  for (const Number number : *subscription) {
    seen.in_order = seen.in_order && number > seen.last;
    seen.last = number;
    if (++seen.count == most) subscription->close();  // Unsubscribes.
    for (unsigned i = 0; i < yields; ++i) weft::this_fiber::yield();
  }
  return seen;
}

void print(const char* name, const Seen& seen, bool expected) {
  fmt::print("{:<32} got {:>8} messages, the last is {:>8}\n", name, seen.count, seen.last);
  if (!seen.in_order) throw std::logic_error("messages came out of order");
  if (!expected) throw std::logic_error("that is not what this subscriber asked for");
}

int run(Number messages) {
  Hub<Number> hub;
  const auto reader = [&](std::size_t places, WhenFull when_full, Number most, unsigned yields) {
    return weft::spawn([subscription = hub.subscribe(places, when_full), most, yields] {
      return read(subscription, most, yields);
    });
  };
  auto thorough = reader(16, WhenFull::publisher_waits, 0, 0);
  auto recent = reader(4, WhenFull::drop_oldest, 0, 10);
  auto brief = reader(16, WhenFull::publisher_waits, 10, 0);
  // No fiber reads the queue of this subscriber until the hub drops it.
  const auto asleep = hub.subscribe(8, WhenFull::drop_subscriber);

  for (Number number = 1; number <= messages; ++number) hub.publish(number);
  hub.close();

  const Seen all = thorough.join();
  print("one the publisher waits for", all, all.count == messages && all.last == messages);
  const Seen some = recent.join();
  print("a slow one that drops the oldest", some, some.count >= 1 && some.last == messages);
  // The subscriber still received the messages that were in its queue when it left.
  const Seen few = brief.join();
  print("one that left after ten", few, few.count >= std::min<Number>(10, messages));
  const Seen until_full = read(asleep, 0, 0);
  print("one that slept and was dropped", until_full,
        until_full.count == std::min<Number>(8, messages));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Number messages = 100'000;
  examples::CommandLine line("pub_sub", "A hub hands messages to subscribers, some of them slow.");
  line.add("--messages", messages, 1, 1'000'000'000, "how many are published");
  return line.run(argc, argv, [&] { return weft::run([&] { return run(messages); }); });
}
