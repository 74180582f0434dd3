// sync/select.cpp over <weft/channel.hpp>: exactly one case of a select is completed, once. Selects
// that meet on several channels never deadlock, and none misses its event. close(), deadlines and
// stop requests end selects. No thread touches a case after its select has left it.
#include "tests/model/model_stop.hpp"

#include <weft/select.hpp>

#include <optional>

#include "sync/channel.cpp"
#include "sync/select.cpp"
#include "tests/model/model_waist.hpp"

namespace weft::base {
std::uint64_t thread_random() noexcept { return std::uint64_t{rl::rand(6)} * (UINT64_MAX / 6); }
}  // namespace weft::base

namespace {

using weft::Channel;
using weft::ChannelStatus;
using weft::Deadline;
using weft::kNoCase;
using weft::on_receive;
using weft::on_send;
using weft::on_stop;
using weft::on_timeout;
using weft::otherwise;
using weft::select;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kNeverLooksAgain, kForgetsWhatWasDone, kNobodyCloses, kNobodyStops };

// Holds a value whose moves the checker follows.
class Tracked {
 public:
  explicit Tracked(int number) : number_(number) {}
  Tracked(Tracked&& other) noexcept : number_(other.number_.get()) { other.number_.set(0); }
  Tracked& operator=(Tracked&& other) noexcept {
    number_.set(other.number_.get());
    other.number_.set(0);
    return *this;
  }
  [[nodiscard]] int number() const { return number_.get(); }

 private:
  Data<int> number_;  // 0: moved from.
};
using Source = Channel<Tracked>;

// Is a receive that, in broken runs, breaks the rules of a case.
class BreakableReceive final : public weft::SelectCase {
 public:
  explicit BreakableReceive(Source& source)
      : BreakableReceive(on_receive(source, [](std::optional<Tracked>) {}), source) {}
  void handle() override {}
  [[nodiscard]] int number() const { return value_ ? value_->number() : 0; }

 private:
  template <class Case>
  BreakableReceive(const Case& model, Source& source)
      : SelectCase(model.lock(), &model.list(), &value_), source_(source) {}

  bool attempt() noexcept override {
    return source_.try_receive(value_) != ChannelStatus::would_wait;
  }
  bool is_ready() noexcept override {
    if (fault == kNeverLooksAgain) return false;
    auto model = on_receive(source_, [](std::optional<Tracked>) {});
    return static_cast<weft::SelectCase&>(model).is_ready();
  }
  bool conclude() noexcept override { return fault != kForgetsWhatWasDone; }

  Source& source_;
  std::optional<Tracked> value_;
};

// The threads: callers 0 and 1 select, and other callers send. One thread may close or stop, and
// one is the clock.
template <class Test, unsigned kCallers>
struct Selects : rl::test_suite<Test, static_cast<int>(2 * kCallers + 2)> {
  World world;
  std::optional<Source> a;
  std::optional<Source> b;
  weft::model::StopState stop;
  // Not part of the modelled program.
  int sent = 0;
  int received = 0;
  unsigned users_left;

  explicit Selects(unsigned users, bool time_runs = false)
      : world(kCallers, time_runs), users_left(users) {}

  void thread(unsigned index) {
    auto& self = static_cast<Test&>(*this);
    if (index < 2 * kCallers) {
      world.run(index, [&](unsigned caller) {
        if (perhaps()) world.await_parked(1 + rl::rand(kCallers - 1));
        self.take_part(caller);
        if (self.is_user(caller)) leave();
      });
    } else if (index == 2 * kCallers) {
      if (perhaps()) world.await_parked(1 + rl::rand(kCallers - 1));
      self.interfere();
    } else if (weft::model::time_passes) {
      world.run_clock();
    }
  }
  // The last user of the channels destroys them.
  void leave() {
    if (--users_left > 0) return;
    a.reset();
    b.reset();
  }
  bool is_user(unsigned) { return true; }
  void interfere() {}
  void before() {
    a.emplace(0);
    b.emplace(0);
  }
  void after() { expect(sent == received, "what was sent was not received, or twice"); }

  void count(const std::optional<Tracked>& value) {
    if (!value) return;
    expect(value->number() != 0, "what was received had been moved away");
    received += value->number();
  }
  auto counting() {
    return [this](std::optional<Tracked> value) { count(value); };
  }
  void send(Source& to, int number) {
    call_on_own_stack([&] {
      if (to.send(Tracked(number))) sent += number;
    });
  }
};

// Two selects that would both receive from one channel and send to the other, crosswise and in
// opposite order: they meet in exactly one of the two channels.
template <bool kThreads>
struct Crosswise : Selects<Crosswise<kThreads>, 2> {
  using Base = Selects<Crosswise, 2>;
  Crosswise() : Base(2) {}
  void before() {
    Base::before();
    if (kThreads) this->world.make_thread(1);
  }
  void take_part(unsigned caller) {
    call_on_own_stack([&] {
      const int number = 1 + static_cast<int>(caller);
      const auto sends = [&](ChannelStatus status) {
        expect(status == ChannelStatus::ok, "an open channel refused a value");
        this->sent += number;
      };
      if (caller == 0) {
        select(on_receive(*this->a, this->counting()), on_send(*this->b, Tracked(number), sends));
      } else {
        select(on_receive(*this->b, this->counting()), on_send(*this->a, Tracked(number), sends));
      }
    });
  }
};

// Two selects receive from two channels, which they name in opposite order. Each channel has a
// sender; with one place, the values may wait in the channel.
template <std::size_t kCapacity>
struct Opposite : Selects<Opposite<kCapacity>, 4> {
  using Base = Selects<Opposite, 4>;
  Opposite() : Base(4) {}
  void before() {
    this->a.emplace(kCapacity);
    this->b.emplace(kCapacity);
  }
  void take_part(unsigned caller) {
    Source& first = caller % 2 == 0 ? *this->a : *this->b;
    Source& second = caller % 2 == 0 ? *this->b : *this->a;
    if (caller >= 2) return this->send(first, static_cast<int>(caller));
    call_on_own_stack([&] {
      BreakableReceive one(first);
      BreakableReceive other(second);
      weft::SelectCase* cases[] = {&one, &other};
      const auto chosen = weft::select_among(cases, weft::Until::never());
      expect(chosen < 2 && (one.number() == 0 || other.number() == 0), "two cases were completed");
      this->received += one.number() + other.number();
    });
  }
};

// A select receives until both channels are closed, and destroys them at once.
struct Closed : Selects<Closed, 2> {
  Closed() : Selects(1) {}
  bool is_user(unsigned caller) { return caller == 0; }
  void take_part(unsigned caller) {
    if (caller == 1) {
      send(*a, 1);
      send(*a, 2);
      (void)a->close();
      return;
    }
    Source* open_a = &*a;
    Source* open_b = &*b;
    while (open_a != nullptr || open_b != nullptr) {
      const auto take = [&](Source*& from) {
        return [&](std::optional<Tracked> value) {
          count(value);
          if (!value) from = nullptr;
        };
      };
      call_on_own_stack([&] {
        if (perhaps()) {
          select(on_receive(open_a, take(open_a)), on_receive(open_b, take(open_b)));
        } else {
          select(on_receive(open_b, take(open_b)), on_receive(open_a, take(open_a)));
        }
      });
    }
  }
  void interfere() {
    if (fault != kNobodyCloses) (void)b->close();
  }
};

// Two selects that send meet close() and a receiver; none of their values may be lost or sent
// twice.
struct SendsClosed : Selects<SendsClosed, 3> {
  SendsClosed() : Selects(4) {}
  void take_part(unsigned caller) {
    call_on_own_stack([&] {
      if (caller == 2) return count(a->receive());
      const int number = 1 + static_cast<int>(caller);
      const auto sends = [&](ChannelStatus status) {
        if (status == ChannelStatus::ok) sent += number;
      };
      select(on_send(*b, Tracked(number), sends), on_send(*a, Tracked(number), sends));
    });
  }
  // Ends the wait of a receiver for which no sender remains.
  void interfere() {
    (void)b->close();
    if (fault != kNobodyCloses) (void)a->close();
    leave();
  }
};

// Selects at both ends of two channels end at their deadlines, as do a plain send and receive.
template <bool kThreads>
struct Timed : Selects<Timed<kThreads>, 3> {
  using Base = Selects<Timed, 3>;
  Timed() : Base(3, true) {}
  void before() {
    Base::before();
    if (kThreads) this->world.make_thread(0);
  }
  static Deadline soon() { return Deadline::at_nanoseconds(weft::model::kSoon); }
  void take_part(unsigned caller) {
    call_on_own_stack([&] {
      if (caller == 0) {
        select(on_receive(*this->a, this->counting()), on_receive(*this->b, this->counting()),
               on_timeout(soon()));
      } else if (caller == 1) {
        select(on_send(*this->b, Tracked(1), [&] { this->sent += 1; }),
               on_send(*this->a, Tracked(1), [&] { this->sent += 1; }), on_timeout(soon()));
      } else if (perhaps()) {
        Tracked value(2);
        if (this->a->send_until(value, soon()) == ChannelStatus::ok) this->sent += 2;
      } else {
        std::optional<Tracked> value;
        (void)this->b->receive_until(value, soon());
        this->count(value);
      }
    });
  }
};

// A stop request ends selects that have a case for it, or that take its token.
struct Stopped : Selects<Stopped, 3> {
  Stopped() : Selects(3) {}
  void take_part(unsigned caller) {
    const auto token = stop.token();
    call_on_own_stack([&] {
      if (caller == 0) {
        select(on_receive(*a, counting()), on_stop(token), on_receive(*b, counting()));
      } else if (caller == 1) {
        auto to_b = on_send(*b, Tracked(1), [&] { sent += 1; });
        weft::SelectCase* cases[] = {&to_b};
        const auto chosen = weft::select_among(cases, token);
        expect(chosen == 0 || stop.is_requested(), "given up without a request");
      } else {
        Tracked value(2);
        if (a->send_until(value, token) == ChannelStatus::ok) sent += 2;
      }
    });
  }
  void interfere() {
    if (fault != kNobodyStops) stop.request();
  }
};

// A value moves from one channel to another, and at each moment one of them has a value. So a
// default is never right.
struct NeverNothing : Selects<NeverNothing, 2> {
  NeverNothing() : Selects(2) {}
  void before() {
    a.emplace(1);
    b.emplace(1);
    Tracked value(1);
    (void)a->try_send(value);
    sent = 1;
  }
  void take_part(unsigned caller) {
    std::optional<Tracked> taken;
    if (caller == 1) {
      send(*b, 2);
      (void)a->try_receive(taken);
      count(taken);
    } else {
      call_on_own_stack([&] {
        select(on_receive(*a, counting()), on_receive(*b, counting()),
               otherwise([] { expect(false, "a default was chosen, but there was a value"); }));
      });
    }
  }
  void after() { expect(received > 0 && received <= sent, "received what was not sent"); }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "select",
             {random_search<Crosswise<false>>("two crosswise", 30'000),
              random_search<Crosswise<true>>("two crosswise, a plain thread", 20'000),
              random_search<Opposite<0>>("two in opposite order, unbuffered", 30'000),
              random_search<Opposite<1>>("two in opposite order, one place", 20'000),
              random_search<Closed>("receives and close", 30'000),
              random_search<SendsClosed>("sends and close", 20'000),
              random_search<Timed<false>>("deadlines", 30'000),
              random_search<Timed<true>>("deadlines, a plain thread", 20'000),
              random_search<Stopped>("a stop request", 30'000),
              random_search<NeverNothing>("a default that is never right", 20'000)},
             {weft::model::relaxed_orders(),
              broken_by(kNeverLooksAgain, "no second look under the locks"),
              broken_by(kForgetsWhatWasDone, "a completed case is forgotten"),
              broken_by(kNobodyCloses, "nobody closes"), broken_by(kNobodyStops, "nobody stops")})
      .run(count, arguments);
}
