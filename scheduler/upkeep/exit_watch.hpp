// Detects that a worker's thread ends although its loop has not returned.
#pragma once

#include <cstdint>

namespace weft::scheduler {

// A local variable in the frame in which a worker's thread runs its worker. The process aborts with
// a message if the thread ends while the variable exists, because a fiber calls pthread_exit() or
// another thread cancels the worker's thread. Otherwise all fibers would silently lack a worker. A
// fiber may call exit(), although that also destroys the thread's variables.
class ExitWatch {
 public:
  // A scope in which a user's handler may call exit() on the worker's own stack.
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
