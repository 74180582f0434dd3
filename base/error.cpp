#include <weft/error.hpp>

#include <string>
#include <weft/detail/never_destroyed.hpp>

namespace weft {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::no_runtime:
        return "no weft::Runtime exists: make one, or call inside of weft::run()";
      case Errc::too_many_fibers:
        return "as many fibers exist as RuntimeOptions::max_fibers allows, a fiber waits for a "
               "stack, or memory_goal is reached: bound what is spawned, by a FiberPool or "
               "TaskGroupOptions::max_running";
      case Errc::invalid_stack_size:
        return "SpawnOptions::stack_size is above 16 MiB, the most: put large data on the heap";
      case Errc::closed:
        return "the channel, pool or socket is closed, and accepts nothing more";
      case Errc::full:
        return "there is no room now, and the call does not wait for it: try again later, give "
               "it a deadline, or raise the capacity or the queue's";
      case Errc::timed_out:
        return "timed out: the deadline passed first";
      case Errc::cancelled:
        return "cancelled: a stop was requested first";
      case Errc::empty_task:
        return "the callable to run is empty, a null pointer or an empty std::function: nothing "
               "was started";
      case Errc::too_many_waiting:
        return "as many callers wait for room as PoolOptions::max_blocked allows: raise it, or "
               "submit less";
      case Errc::end_of_stream:
        return "the peer has closed its side of the connection";
      case Errc::too_heavy:
        return "SubmitOptions::weight is above the capacity of the pool, so the task could never "
               "start: lower the one or raise the other";
      case Errc::already_watched:
        return "the runtime watches the descriptor already, for another stream or listener: use "
               "that one, "
               "or a dup() of the descriptor";
      case Errc::signal_in_use:
        return "another io::SignalSet or wait_signal() of the process waits for one of the "
               "signals: wait for it in one place, which passes it on, by a Channel say";
    }
    return "unknown weft error";
  }
  // Lets callers compare the codes with the standard library's std::errc values for the same
  // errors.
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
      case Errc::timed_out:
        return std::make_error_condition(std::errc::timed_out);
      case Errc::cancelled:
        return std::make_error_condition(std::errc::operation_canceled);
      case Errc::empty_task:
      case Errc::invalid_stack_size:
        return std::make_error_condition(std::errc::invalid_argument);
      default:
        return {code, *this};
    }
  }
};
constinit const detail::NeverDestroyed<Category> category;

}  // namespace

const std::error_category& error_category() noexcept { return category.get(); }

}  // namespace weft
