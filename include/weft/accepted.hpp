// The answer of a call that hands a task over.
#pragma once

#include <system_error>
#include <type_traits>

namespace weft {

// True if the task was accepted. If not, error() says why, and the callable is with its owner
// again, as it was: it can be handed to somebody else, or be told of the refusal.
//
//   if (!pool.try_submit(std::move(request))) request.answer_busy();
//   if (const Accepted accepted = pool.submit(task); !accepted) log(accepted.error().message());
//
// A plain value.
class [[nodiscard]] Accepted {
 public:
  // The task was accepted.
  Accepted() noexcept = default;
  // The task was refused with `error`; an error of value 0 means that it was accepted.
  Accepted(const std::error_code& error) noexcept  // NOLINT(google-explicit-constructor)
      : value_(error.value()), category_(error ? &error.category() : nullptr) {}
  // Refused for this reason, an Errc, say.
  template <class Code>
  requires std::is_error_code_enum_v<Code> Accepted(Code code)
  noexcept  // NOLINT(google-explicit-constructor): a reason is an answer.
      : Accepted(std::error_code(code)) {}

  // Returns whether it was accepted.
  [[nodiscard]] explicit operator bool() const noexcept { return category_ == nullptr; }
  // Empty if it was accepted.
  [[nodiscard]] std::error_code error() const noexcept {
    return category_ == nullptr ? std::error_code() : std::error_code(value_, *category_);
  }
  // Callers that keep errors use it; in a condition the answer counts.
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
  // No category instead of an empty code: what is accepted, as most is, calls nothing for it.
  int value_ = 0;
  const std::error_category* category_ = nullptr;
};

}  // namespace weft
