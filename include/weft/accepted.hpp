// Defines the result of a call that submits a task.
#pragma once

#include <weft/result.hpp>

namespace weft {

// Represents the result of a task's submission; converts to true if the task was accepted. The
// caller must check the result. If the task was refused, `error` holds the reason. The callable is
// then unchanged, unless moving it may throw. The caller may pass it on, or report the refusal:
//
//   if (!pool.try_submit(std::move(request))) request.answer_busy();
//   if (const Accepted accepted = pool.submit(task); !accepted) log(accepted.error.message());
//
// Context: plain value.
struct [[nodiscard]] Accepted : Result<void> {
  using Result<void>::Result;
};

}  // namespace weft
