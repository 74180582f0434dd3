// Implements jobs that were submitted with SubmitOptions.
#pragma once

#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/task_attributes.hpp>

namespace weft::detail {

// A submitted task that has attributes and for which no caller waits. A pool keeps some of these
// objects and reuses them for later tasks.
class AttributedTask final : public PoolJob {
 public:
  explicit AttributedTask(const pool::PoolCore& core) noexcept
      : PoolJob(core, Kind::unwatched, &attributes_), attributes_(*this) {}

  // Sets the task. Throws std::invalid_argument with the name of an invalid field, std::bad_alloc,
  // and whatever a copy or move of the callable throws.
  template <class F>
  void set(const SubmitOptions& options, std::stop_token of_pool, F&& callable) {
    using Callable = std::decay_t<F>;
    constexpr bool kIsStoppable = kTakesStop<Callable&>;
    attributes_.set(options, kIsStoppable);
    const bool has_own =
        kIsStoppable && (options.stop.stop_possible() || options.timeout != kNever);
    stop_ = PoolStop(std::move(of_pool), has_own);
    if constexpr (kIsStoppable) {
      task_ = Task(StoppableTask<Callable>{std::forward<F>(callable), stop_.token()});
    } else {
      task_ = Task(std::forward<F>(callable));
    }
    attributes_.listen(options.stop);
  }
  // Moves the callable of a refused task back to `owner`.
  template <class F>
  void give_back_to(std::remove_reference_t<F>& owner) noexcept {
    PoolItem::give_back_from<F>(task_, owner);
  }
  [[nodiscard]] Thrown take_exception() noexcept override {
    return {std::exchange(exception_, nullptr), task_.type_hint()};
  }

 private:
  ~AttributedTask() override = default;

  [[nodiscard]] bool invoke() noexcept override {
    WEFT_TRY {
      stop_.while_following([this] { task_.run(); });
    }
    WEFT_CATCH_ALL { exception_ = std::current_exception(); }
    return exception_ == nullptr;
  }
  void drop_callable() noexcept override { task_.reset(); }
  void fail(std::exception_ptr exception) noexcept override {
    task_.reset();
    exception_ = std::move(exception);
  }
  void request_stop() noexcept override { stop_.request(); }

  Task task_;
  PoolStop stop_{{}, false};
  std::exception_ptr exception_;
  // The last member, because it must be destroyed first: it refers to the other members.
  TaskAttributes attributes_;
};

// Represents a task that has attributes and a handle.
template <class F, class R>
class AttributedCall final : public PoolCall<F, R> {
 public:
  template <class G>
  AttributedCall(const pool::PoolCore& core, const SubmitOptions& options,
                 std::stop_token stop_of_pool, G&& callable)
      : PoolCall<F, R>(core, PoolJob::Kind::on_heap, std::move(stop_of_pool),
                       std::forward<G>(callable), &attributes_),
        attributes_(*this) {
    attributes_.set(options, kTakesStop<F&>);
    attributes_.listen(options.stop);
  }

 private:
  TaskAttributes attributes_;
};

}  // namespace weft::detail
