// Computes power series with fibers, after M. D. McIlroy's "Squinting at power series". A reader
// requests one coefficient of a series after the other, and the series requests coefficients from
// its operands. Cycles of series solve an equation, which is a hard test of waits.
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>
#include <weft/channel.hpp>
#include <weft/mutex.hpp>
#include <weft/select.hpp>
#include <weft/task_group.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using weft::Channel;
using weft::ChannelStatus;
using weft::on_receive;
using weft::on_send;
using weft::on_stop;
using Number = std::int64_t;

struct Demand {};
struct Series {
  Channel<Demand> demands;
  Channel<Number> coefficients;
};
using Pair = std::array<Series*, 2>;

// Owns series and their fibers, which all end with it.
class Calculator {
 public:
  // 1 + x + x^2 + ...
  Series& ones() {
    return start([this](Series& out) {
      while (put(out, 1)) {
      }
    });
  }
  Series& scaled(Number factor, Series& series) {
    return start([this, factor, &series](Series& out) {
      while (is_wanted(out)) {
        const auto next = get(series);
        if (!next || !give(out, factor * *next)) return;
      }
    });
  }
  Series& sum(Series& one, Series& other) {
    return start([this, &one, &other](Series& out) {
      while (is_wanted(out)) {
        const auto left = get(one);
        const auto right = get(other);
        if (!left || !right || !give(out, *left + *right)) return;
      }
    });
  }
  // If u and v are the heads, and U and V the tails: uv + x (u V + v U) + x^2 U V.
  Series& product(Series& one, Series& other) {
    return start([this, &one, &other](Series& out) {
      if (!is_wanted(out)) return;
      const auto u = get(one);
      const auto v = get(other);
      if (!u || !v || !give(out, *u * *v)) return;
      const Pair ones = split(one);
      const Pair others = split(other);
      Series& middle = sum(scaled(*u, *others[0]), scaled(*v, *ones[0]));
      if (!is_wanted(out)) return;
      const auto next = get(middle);
      if (!next || !give(out, *next)) return;
      copy(sum(middle, product(*ones[1], *others[1])), out);
    });
  }
  // Puts head + x * tail into `out`, from which other series may already be made.
  void define(Series& out, Number head, Series& tail) {
    group_.spawn([this, &out, head, &tail] {
      if (put(out, head)) copy(tail, out);
    });
  }
  // Returns two readers of one series, each of which may read at its own pace.
  Pair split(Series& from) {
    const Pair outs{&make(), &make()};
    group_.spawn([this, &from, outs] { Splitter(from, outs).run(group_.context().token()); });
    return outs;
  }
  Series& make() {
    const std::lock_guard guard(mutex_);
    return series_.emplace_back();
  }

  std::vector<Number> first(Series& series, int count) {
    std::vector<Number> result;
    for (int i = 0; i < count; ++i) result.push_back(get(series).value());
    return result;
  }

 private:
  // Passes coefficients on, and requests each once. Neither reader waits for the other.
  class Splitter {
   public:
    Splitter(Series& from, const Pair& outs) : from_(from), outs_(outs) {}

    void run(const std::stop_token& token) {
      for (bool goes_on = true; goes_on;) {
        const bool asks = !is_asking_ && (lacks(0) || lacks(1));
        // Cases that do not apply now are disabled.
        weft::select(
            on_receive(wants_[0] ? nullptr : &outs_[0]->demands, [&](auto) { wants_[0] = true; }),
            on_receive(wants_[1] ? nullptr : &outs_[1]->demands, [&](auto) { wants_[1] = true; }),
            on_send(asks ? &from_.demands : nullptr, Demand{}, [&] { is_asking_ = true; }),
            on_receive(is_asking_ ? &from_.coefficients : nullptr,
                       [&](std::optional<Number> next) {
                         is_asking_ = false;
                         known_.push_back(next.value());
                       }),
            on_send(has(0) ? &outs_[0]->coefficients : nullptr, next(0), [&] { served(0); }),
            on_send(has(1) ? &outs_[1]->coefficients : nullptr, next(1), [&] { served(1); }),
            on_stop(token, [&] { goes_on = false; }));
      }
    }

   private:
    [[nodiscard]] bool has(std::size_t i) const { return wants_[i] && place_[i] < known_.size(); }
    [[nodiscard]] bool lacks(std::size_t i) const { return wants_[i] && !has(i); }
    [[nodiscard]] Number next(std::size_t i) const { return has(i) ? known_[place_[i]] : 0; }
    void served(std::size_t i) {
      wants_[i] = false;
      ++place_[i];
    }

    Series& from_;
    const Pair outs_;
    std::vector<Number> known_;
    std::array<std::size_t, 2> place_{};
    std::array<bool, 2> wants_{};
    bool is_asking_ = false;
  };

  template <class Body>
  Series& start(Body body) {
    Series& out = make();
    group_.spawn([&out, body] { body(out); });
    return out;
  }
  bool is_wanted(Series& series) {
    std::optional<Demand> demand;
    return series.demands.receive_until(demand, group_.context()) == ChannelStatus::ok;
  }
  bool give(Series& series, Number coefficient) {
    return series.coefficients.send_until(coefficient, group_.context()) == ChannelStatus::ok;
  }
  bool put(Series& series, Number coefficient) {
    return is_wanted(series) && give(series, coefficient);
  }
  std::optional<Number> get(Series& series) {
    std::optional<Number> result;
    Demand demand;
    if (series.demands.send_until(demand, group_.context()) == ChannelStatus::ok) {
      (void)series.coefficients.receive_until(result, group_.context());
    }
    return result;
  }
  void copy(Series& from, Series& to) {
    while (is_wanted(to)) {
      const auto next = get(from);
      if (!next || !give(to, *next)) return;
    }
  }

  weft::Mutex mutex_;
  std::deque<Series> series_;  // Guarded by mutex_.
  weft::TaskGroup group_;      // Ends first, and all fibers with it.
};

TEST_SUITE_BEGIN("sync/select_power_series");

FIBER_TEST_CASE("fibers that select on channels add and multiply power series") {
  Calculator calculator;
  Series& series = calculator.sum(calculator.ones(), calculator.scaled(3, calculator.ones()));
  CHECK(calculator.first(series, 5) == std::vector<Number>{4, 4, 4, 4, 4});
}

FIBER_TEST_CASE("fibers that select on channels compute the square and the cube of 1 / (1 - x)") {
  Calculator calculator;
  Series& square = calculator.product(calculator.ones(), calculator.ones());
  const Pair squares = calculator.split(square);
  CHECK(calculator.first(*squares[0], 6) == std::vector<Number>{1, 2, 3, 4, 5, 6});
  Series& cube = calculator.product(*squares[1], calculator.ones());
  CHECK(calculator.first(cube, 6) == std::vector<Number>{1, 3, 6, 10, 15, 21});
}

FIBER_TEST_CASE("fibers that select on channels compute the Catalan numbers from F = 1 + x F^2") {
  Calculator calculator;
  Series& series = calculator.make();
  const Pair result_and_factors = calculator.split(series);
  const Pair factors = calculator.split(*result_and_factors[1]);
  calculator.define(series, 1, calculator.product(*factors[0], *factors[1]));
  CHECK(calculator.first(*result_and_factors[0], 8) ==
        std::vector<Number>{1, 1, 2, 5, 14, 42, 132, 429});
}

TEST_SUITE_END();

}  // namespace
