// Detects that a worker's thread ends before its loop has returned.
#pragma once

#include <cstdint>

namespace weft::scheduler {

// A local variable in the frame in which a worker's thread runs its worker. The process aborts with
// a message if the thread ends while the variable exists, because a fiber calls pthread_exit() or
// another thread cancels the worker's thread. Without this check, the runtime would lose the worker
// without notice. A fiber may call exit(), although exit() also destroys the thread's variables.
class ExitWatch {
 public:
  // While a Pause exists, a handler of the program may call exit() on the worker's own stack.
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
