// Holds a lock until the end of a scope.
#pragma once

#include <weft/detail/thread_annotations.hpp>

namespace weft::detail {

// Does the same as std::lock_guard, with annotations for clang's lock analysis.
template <class Lock>
class WEFT_SCOPED_LOCK Guard {
 public:
  explicit Guard(Lock& lock) noexcept WEFT_ACQUIRES(lock) : lock_(lock) { lock_.lock(); }
  ~Guard() WEFT_RELEASES() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace weft::detail
