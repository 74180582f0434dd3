// The table of calls that blocked a worker.
#pragma once

#include <cstdint>
#include <string>

namespace weft::posix {

struct FiberState;

// A call of the C library, and where it returns to.
struct Call {
  const char* name;
  const void* from;
};

// Measures a call that is made in place, and enters it into the table. Keeps errno.
class BlockedCall {
 public:
  BlockedCall(const Call& call, const char* reason) noexcept;
  ~BlockedCall();
  BlockedCall(const BlockedCall&) = delete;
  BlockedCall& operator=(const BlockedCall&) = delete;

 private:
  const Call call_;
  const char* const reason_;
  const std::int64_t begin_;
  FiberState* const state_;
};

// Returns the function that an address is in, or the file and the offset. Throws std::bad_alloc.
[[nodiscard]] std::string place_of(const void* address);

// Adds the table to the metrics, once. Throws std::bad_alloc, std::system_error.
void add_metrics();

// In the child of a fork, where no thread holds the lock of the table.
void forget_blocked_calls() noexcept;

}  // namespace weft::posix
