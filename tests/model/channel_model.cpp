// <weft/channel.hpp>: each value is received once, in the order of its sender, and moved without a
// race; close() ends every wait, and so do deadlines and stop requests; no caller touches a waiter,
// or the channel, for longer than allowed.
#include "tests/model/model_stop.hpp"

#include "sync/channel.cpp"

#include <optional>

#include "tests/model/model_waist.hpp"

namespace {

using weft::Channel;
using weft::ChannelStatus;
using weft::Deadline;
using weft::Until;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kSendsTwice, kLosesValue, kNobodyCloses };

// Holds a value whose moves the checker follows: from one stack to another, through the buffer or
// directly.
class Tracked {
 public:
  explicit Tracked(int number) : number_(number) {}
  Tracked(Tracked&& other) noexcept : number_(other.number_.get()) { other.number_.set(0); }
  [[nodiscard]] int number() const { return number_.get(); }

 private:
  Data<int> number_;  // 0: moved from.
};

enum Kind { kUntimed, kThreads, kTimed, kClosedEarly, kTried, kStopped, kStoppedThreads };

// `kSenders` callers send `kValues` values each; one caller receives until the channel is closed.
// The last sender to finish closes the channel; with kClosedEarly, another thread closes it at any
// moment. The last sender or receiver to finish destroys the channel, even while close() has not
// returned. With kStopped another thread requests a stop, which ends some of the waits, and
// deadlines end others.
template <unsigned kSenders, int kValues, std::size_t kCapacity, Kind kKind>
struct Sends : rl::test_suite<Sends<kSenders, kValues, kCapacity, kKind>,
                              static_cast<int>(2 * (kSenders + 1) + 2)> {
  static constexpr unsigned kCallers = kSenders + 1;
  static constexpr bool kHasStop = kKind == kStopped || kKind == kStoppedThreads;
  static constexpr bool kHasClock = kKind == kTimed || kHasStop;
  World world{kCallers, kHasClock};
  std::optional<Channel<Tracked>> channel;
  weft::model::StopState stop;
  // Not part of the modelled program.
  unsigned senders_left = kSenders;
  unsigned users_left = kSenders + 1;
  int sent = 0;
  int received = 0;
  int last[kSenders] = {};

  void before() {
    channel.emplace(kCapacity);
    if (kKind != kThreads && kKind != kStoppedThreads) return;
    for (unsigned i = 0; i < kCallers; i += 2) world.make_thread(i);
  }

  void thread(unsigned index) {
    if (index < 2 * kCallers) {
      world.run(index, [&](unsigned caller) {
        if (perhaps()) world.await_parked(1 + rl::rand(kSenders));
        if (caller == 0) {
          receive_all();
        } else {
          send_all(caller - 1);
        }
      });
    } else if (index == 2 * kCallers) {
      if (kKind != kClosedEarly && !kHasStop) return;
      if (perhaps()) world.await_parked(1 + rl::rand(kSenders));
      if (kHasStop) {
        stop.request();
      } else {
        (void)channel->close();
      }
    } else {
      world.run_clock();
    }
  }

  // The last sender or receiver destroys the channel.
  void leave() {
    if (--users_left == 0) channel.reset();
  }

  void send_all(unsigned sender) {
    bool is_open = true;
    for (int i = 1; i <= kValues && is_open; ++i) {
      call_on_own_stack([&] {
        is_open = send(Tracked(static_cast<int>(sender) * 100 + i));
        if (is_open && fault == kSendsTwice)
          (void)send(Tracked(static_cast<int>(sender) * 100 + i));
      });
      if (is_open) ++sent;
      expect(is_open || kKind == kClosedEarly, "a send failed on an open channel");
    }
    // With kClosedEarly, another thread closes. Sends that precede a close() by their last sender
    // may end after that close, so all of them count.
    const bool closes = --senders_left == 0 && kKind != kClosedEarly && fault != kNobodyCloses;
    leave();  // The receiver stays until it sees the close.
    if (closes) expect(channel->close(), "the channel had been closed before");
  }

  bool send(Tracked value) {
    if (kHasClock) {
      for (;;) {
        const auto token = stop.token();
        const auto status = channel->send_until(value, until(token));
        expect((status == ChannelStatus::ok) == (value.number() == 0),
               "a value was moved although it was not sent, or not moved although it was");
        if (!is_ended_early(status)) return status == ChannelStatus::ok;
      }
    }
    if (kKind == kTried && perhaps()) {
      for (int i = 0; i < 5; ++i) {
        if (channel->try_send(value) == ChannelStatus::ok) return true;
        weft::model::let_others_run();
      }
    }
    return channel->send(std::move(value));
  }

  void receive_all() {
    for (bool is_open = true; is_open;) {
      call_on_own_stack([&] { is_open = receive(); });
    }
    leave();
  }

  // Returns false if the channel is closed and drained.
  bool receive() {
    std::optional<Tracked> value;
    ChannelStatus status = ChannelStatus::timed_out;
    while (is_ended_early(status)) {
      const auto token = stop.token();
      status = channel->receive_until(value, until(token));
    }
    expect(value.has_value() == (status == ChannelStatus::ok), "a value and no ok, or no value");
    if (!value) return false;
    const int number = value->number();
    expect(number != 0, "what was received had been moved away");
    int& last_of_sender = last[number / 100];
    expect(number % 100 == last_of_sender + 1, "values came out of order, twice or not at all");
    last_of_sender = number % 100;
    if (fault != kLosesValue) ++received;
    return true;
  }

  [[nodiscard]] static Deadline deadline() {
    return kHasClock && !weft::model::is_late && perhaps()
               ? Deadline::at_nanoseconds(weft::model::kSoon)
               : Deadline::never();
  }
  // A stop request persists, and would end each later wait at once.
  [[nodiscard]] Until until(const std::stop_token& token) const {
    if (!kHasStop || token.stop_requested() || !perhaps()) return deadline();
    return {deadline(), token};
  }
  [[nodiscard]] bool is_ended_early(ChannelStatus status) const {
    expect(status != ChannelStatus::stopped || stop.is_requested(), "stopped without a request");
    return status == ChannelStatus::timed_out || status == ChannelStatus::stopped;
  }

  void after() {
    expect(kKind == kClosedEarly || received == static_cast<int>(kSenders) * kValues,
           "not all values were received");
    expect(received == sent, "a value that was sent was not received");
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "channel",
             {random_search<Sends<1, 2, 0, kUntimed>>("unbuffered", 30'000),
              random_search<Sends<1, 3, 1, kUntimed>>("one place", 30'000),
              random_search<Sends<2, 2, 0, kThreads>>("unbuffered, two senders, plain threads",
                                                      20'000),
              random_search<Sends<2, 2, 1, kUntimed>>("one place, two senders", 20'000),
              random_search<Sends<2, 2, 1, kTried>>("one place, tries", 20'000),
              random_search<Sends<2, 2, 0, kTimed>>("unbuffered, deadlines", 20'000),
              random_search<Sends<2, 2, 1, kTimed>>("one place, deadlines", 20'000),
              random_search<Sends<2, 2, 0, kClosedEarly>>("unbuffered, closed at any moment",
                                                          20'000),
              random_search<Sends<2, 2, 1, kClosedEarly>>("one place, closed at any moment",
                                                          20'000),
              random_search<Sends<1, 2, 0, kStopped>>("unbuffered, a stop request", 20'000),
              random_search<Sends<2, 2, 1, kStopped>>("one place, a stop request", 20'000),
              random_search<Sends<2, 1, 0, kStoppedThreads>>("a stop request, plain threads",
                                                             20'000)},
             {weft::model::relaxed_orders(), broken_by(kSendsTwice, "a value is sent twice"),
              broken_by(kLosesValue, "a received value is dropped"),
              broken_by(kNobodyCloses, "nobody closes")})
      .run(count, arguments);
}
