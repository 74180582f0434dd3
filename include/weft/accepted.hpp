// The result of a call that submits a task.
#pragma once

#include <weft/result.hpp>

namespace weft {

// The result of a call that submits a task: true if the task was accepted. It must not be ignored.
// If the task was refused, `error` has the reason, and the caller keeps the unchanged callable. The
// caller may pass it to another pool or answer the refusal:
//
//   if (!pool.try_submit(std::move(request))) request.answer_busy();
//   if (const Accepted accepted = pool.submit(task); !accepted) log(accepted.error.message());
//
// Context: plain value.
struct [[nodiscard]] Accepted : Result<void> {
  using Result<void>::Result;
};

}  // namespace weft
