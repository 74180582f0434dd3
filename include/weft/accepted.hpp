// The result of a call that submits a task.
#pragma once

#include <weft/result.hpp>

namespace weft {

// The result of a call that submits a task: true if the task was accepted. The caller must not
// ignore it. If the task was refused, `error` holds the reason, and the caller keeps the unchanged
// callable. The caller may then pass the callable to another pool, or report the refusal:
//
//   if (!pool.try_submit(std::move(request))) request.answer_busy();
//   if (const Accepted accepted = pool.submit(task); !accepted) log(accepted.error.message());
//
// Context: plain value.
struct [[nodiscard]] Accepted : Result<void> {
  using Result<void>::Result;
};

}  // namespace weft
