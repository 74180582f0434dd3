// The result of a call that submits a task.
#pragma once

#include <system_error>
#include <type_traits>

namespace weft {

// Reports whether a task was accepted. If not, error() has the reason, and the caller keeps the
// unchanged callable. The caller may pass it to another pool or answer the refusal:
//
//   if (!pool.try_submit(std::move(request))) request.answer_busy();
//   if (const Accepted accepted = pool.submit(task); !accepted) log(accepted.error().message());
//
// Context: plain value.
class [[nodiscard]] Accepted {
 public:
  // Accepts the task.
  Accepted() noexcept = default;
  // Refuses the task with `error`, or accepts it if the value of `error` is 0.
  Accepted(const std::error_code& error) noexcept  // NOLINT(google-explicit-constructor)
      : value_(error.value()), category_(error ? &error.category() : nullptr) {}
  // Refuses the task for this reason, such as an Errc.
  template <class Code>
  requires std::is_error_code_enum_v<Code> Accepted(Code code)
  noexcept  // NOLINT(google-explicit-constructor): a reason is an answer.
      : Accepted(std::error_code(code)) {}

  // Returns whether it was accepted.
  [[nodiscard]] explicit operator bool() const noexcept { return category_ == nullptr; }
  // Returns the reason, or no error if it was accepted.
  [[nodiscard]] std::error_code error() const noexcept {
    return category_ == nullptr ? std::error_code() : std::error_code(value_, *category_);
  }
  // Converts for callers that store errors; a condition uses operator bool().
  operator std::error_code() const noexcept {
    return error();
  }  // NOLINT(google-explicit-constructor)

  [[nodiscard]] friend bool operator==(const Accepted& answer,
                                       const std::error_code& code) noexcept {
    return answer.error() == code;
  }
  [[nodiscard]] friend bool operator==(const Accepted& answer,
                                       const std::error_condition& condition) noexcept {
    return answer.error() == condition;
  }

 private:
  // A null category instead of an empty code: an accepted task, the usual case, then calls nothing
  // for it.
  int value_ = 0;
  const std::error_category* category_ = nullptr;
};

}  // namespace weft
