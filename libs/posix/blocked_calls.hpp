// The table of calls that blocked a worker.
#pragma once

#include <cstdint>
#include <string>

namespace weft::posix {

struct FiberState;

// A call of the C library, and its return address.
struct Call {
  const char* name;
  const void* from;
};

// Measures a call that is made in place, and adds it to the table. Keeps errno.
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

// Returns the function that contains the address, or the file and offset. Throws std::bad_alloc.
[[nodiscard]] std::string place_of(const void* address);

// Adds the table to the metrics, once. Throws std::bad_alloc or std::system_error.
void add_metrics();

// Makes the lock of the table usable in the child of a fork, where no thread holds it.
void forget_blocked_calls() noexcept;

}  // namespace weft::posix
