// The table of calls that blocked a worker.
#pragma once

#include <cstdint>

namespace weft::posix {

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
};

// Adds the table to the metrics, once. Throws std::bad_alloc, std::system_error.
void add_metrics();

}  // namespace weft::posix
