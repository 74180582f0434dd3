// Detects that a worker's thread ends before its loop has returned.
#pragma once

#include <cstdint>

namespace weft::scheduler {

// A worker's thread has an ExitWatch as a local variable. If the thread ends while this variable
// exists, the process aborts with a message. This happens if a fiber calls pthread_exit(), or if
// another thread cancels the worker's thread. Without this check, the runtime would silently lose
// the worker. A fiber may call exit(): the check distinguishes that call from the end of the
// thread, although both destroy thread_local objects.
class ExitWatch {
 public:
  // While a Pause exists, the program's deadlock handler may call exit() on the worker's stack.
  class Pause {
   public:
    Pause() noexcept;
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::uintptr_t start_;
  };

  ExitWatch() noexcept;
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;
};

}  // namespace weft::scheduler
