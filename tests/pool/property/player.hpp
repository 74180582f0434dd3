// A real pool, which the property test compares with its model.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/pool/property/model.hpp"

namespace weft::test {

// It lives in the main fiber of a runtime with one worker.
class Player {
 public:
  explicit Player(PoolOptions options) : pool_(handling_exceptions(std::move(options))) {}

  // Returns whether the main fiber can make the call itself, so that no other fiber runs before the
  // call returns. A cancel needs the handle, which a blocked async() returns a moment after its
  // task was accepted.
  [[nodiscard]] static bool is_direct(const Op& op, OnFull when_full) {
    if (op.act == Act::submit)
      return when_full == OnFull::reject || when_full == OnFull::drop_oldest;
    return op.act == Act::try_submit || op.act == Act::bulk ||
           (op.act >= Act::open && op.act <= Act::resume && op.act != Act::cancel &&
            op.act != Act::stop);
  }
  void apply(const Op& op) {
    if (op.has_task()) {
      gates_[op.id];
      stops_[op.id];
    }
    if (is_direct(op, when_full_)) return make(op);
    ++helpers_;
    const bool by_clock = op.act == Act::submit_past || op.act == Act::wait_idle_past;
    if (by_clock) ++on_the_clock_;
    go([this, op, by_clock] {
      make(op);
      --helpers_;
      if (by_clock) --on_the_clock_;
    });
  }
  // Lets all fibers run until none can continue.
  void settle() const {
    // More passes than consecutive wakes: each pass lets all ready fibers run.
    constexpr int kPasses = 40;
    // Some pass notices a deadline that has passed.
    constexpr int kPassesOfTheClock = 100'000;
    for (int i = 0; i < kPassesOfTheClock && on_the_clock_ > 0; ++i) this_fiber::yield();
    for (int i = 0; i < kPasses; ++i) this_fiber::yield();
  }

  [[nodiscard]] const Behaviour& behaviour() const { return behaviour_; }
  [[nodiscard]] const FiberPool& pool() const { return pool_; }

  // Returns false if a caller or the pool is stuck, so that this object must not be destroyed.
  [[nodiscard]] bool end() {
    for (auto& [id, gate] : gates_) gate.set();
    for (auto& [id, stop] : stops_) stop.request_stop();
    pool_.close(Close::discard);
    settle();
    return helpers_ == 0 && pool_.join_until(Deadline::past());
  }

 private:
  PoolOptions handling_exceptions(PoolOptions options) {
    options.on_exception = [this](std::exception_ptr) { ++behaviour_.handled; };
    when_full_ = options.on_full;
    return options;
  }

  void make(const Op& op) {
    if (op.has_task() && op.course == Course::stoppable) {
      return offer(op, [this, op](const std::stop_token& token) {
        behaviour_.started.push_back(op.id);
        (void)gates_[op.id].wait_until(token);
        if (op.throws) throw 1;
      });
    }
    if (op.has_task()) {
      return offer(op, [this, op] {
        behaviour_.started.push_back(op.id);
        if (op.course == Course::gated) gates_[op.id].wait();
        if (op.throws) throw 1;
      });
    }
    steer(op);
  }
  template <class Task>
  void offer(const Op& op, Task task) {
    if (!op.options.are_set) return offer_to(op, std::move(task));
    offer_to(op, std::move(task),
             SubmitOptions{.priority = op.options.priority,
                           .key = op.options.key == 0 ? TaskKey() : TaskKey(op.options.key),
                           .weight = op.options.weight});
  }
  // `options` is empty or a SubmitOptions.
  template <class Task, class... Options>
  void offer_to(const Op& op, Task task, const Options&... options) {
    switch (op.act) {
      case Act::submit:
        return answer(op.id, pool_.submit(options..., std::move(task)));
      case Act::try_submit:
        return answer(op.id, pool_.try_submit(options..., std::move(task)));
      case Act::submit_past:
        return answer(op.id, pool_.submit_until(options..., Deadline::past(), std::move(task)));
      case Act::submit_stopping: {
        const std::stop_token token = stops_[op.id].get_token();
        return answer(op.id, pool_.submit_until(options..., token, std::move(task)));
      }
      case Act::run:
        return answer_end(op.id, [&] { pool_.run(options..., task); });
      default:
        return answer_end(op.id, [&] {
          PoolTask<void>& handle = handles_[op.id];
          handle = pool_.async(options..., std::move(task));
          answer(op.id, std::error_code());
          handle.wait();
          handle.get();
        });
    }
  }
  void offer_many(const Op& op) {
    std::vector<std::function<void()>> tasks;
    for (std::size_t i = 0; i < op.number; ++i) {
      tasks.push_back([this, id = op.id_of_part(i)] { behaviour_.started.push_back(id); });
    }
    behaviour_.answers[op.id] = std::to_string(pool_.submit_bulk(std::move(tasks)).value);
  }
  void steer(const Op& op) {
    switch (op.act) {
      case Act::bulk:
        return offer_many(op);
      case Act::open:
        if (const auto gate = gates_.find(op.target); gate != gates_.end()) gate->second.set();
        return;
      case Act::cancel: {
        const auto handle = handles_.find(op.target);
        if (handle == handles_.end() || !handle->second.valid() || handle->second.ready()) return;
        return answer(op.id, handle->second.cancel());
      }
      case Act::stop:
        if (const auto stop = stops_.find(op.target); stop != stops_.end()) {
          stop->second.request_stop();
        }
        return;
      case Act::resize:
        return pool_.resize(op.number);
      case Act::pause:
        return pool_.pause();
      case Act::resume:
        return pool_.resume();
      case Act::close_drain:
        return pool_.close(Close::drain);
      case Act::close_discard:
        return pool_.close(Close::discard);
      case Act::close_cancel:
        return pool_.close(Close::cancel);
      case Act::reopen:
        return pool_.reopen();
      case Act::wait_idle:
        return answer(op.id, pool_.wait_idle_until({}));
      case Act::wait_idle_past:
        return answer(op.id, pool_.wait_idle_until(Deadline::past()));
      case Act::wait_paused:
        return answer(op.id, pool_.wait_paused());
      default:
        return answer(op.id, pool_.join_until({}));
    }
  }

  void answer(int id, bool yes) { behaviour_.answers[id] = yes ? "true" : "false"; }
  void answer(int id, std::error_code code) {
    const std::map<std::error_code, const char*> names{
        {{}, "accepted"},
        {Errc::closed, "closed"},
        {Errc::full, "full"},
        {Errc::timed_out, "timed out"},
        {Errc::cancelled, "cancelled"},
        {Errc::too_many_waiting, "too many waiting"},
        {Errc::too_heavy, "too heavy"},
        {std::make_error_code(std::errc::operation_canceled), "dropped"}};
    const auto name = names.find(code);
    behaviour_.answers[id] = name == names.end() ? code.message() : name->second;
  }
  template <class Call>
  void answer_end(int id, Call call) {
    try {
      call();
      behaviour_.answers[id] = "returned";
    } catch (const std::system_error& error) {
      answer(id, error.code());
    } catch (int) {
      behaviour_.answers[id] = "threw";
    }
  }

  OnFull when_full_ = OnFull::block;
  Behaviour behaviour_;
  std::map<int, weft::Event> gates_;
  std::map<int, std::stop_source> stops_;
  std::map<int, PoolTask<void>> handles_;
  int helpers_ = 0;
  int on_the_clock_ = 0;  // Helpers that wait for the clock.
  FiberPool pool_;
};

}  // namespace weft::test
