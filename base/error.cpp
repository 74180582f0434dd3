#include <weft/error.hpp>

#include <string>

namespace weft {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::no_runtime:
        return "no Runtime exists";
      case Errc::too_many_fibers:
        return "too many fibers";
      case Errc::invalid_stack_size:
        return "invalid stack size";
      case Errc::closed:
        return "closed";
      case Errc::full:
        return "full";
      case Errc::timed_out:
        return "timed out";
      case Errc::cancelled:
        return "cancelled";
      case Errc::empty_task:
        return "the task is empty";
      case Errc::too_many_waiting:
        return "too many are waiting already";
      case Errc::end_of_stream:
        return "end of stream";
      case Errc::too_heavy:
        return "the task's weight is above the pool's capacity";
      case Errc::already_watched:
        return "the descriptor is watched already";
    }
    return "unknown weft error";
  }
  // So that callers can compare with what the standard library calls the same.
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
      case Errc::timed_out:
        return std::make_error_condition(std::errc::timed_out);
      case Errc::cancelled:
        return std::make_error_condition(std::errc::operation_canceled);
      default:
        return {code, *this};
    }
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weft
