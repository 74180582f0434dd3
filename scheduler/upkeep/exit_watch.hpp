// Detects that a worker's thread is ended from outside.
#pragma once

#include <cstdint>

namespace weft::scheduler {

// It is in the frame in which a worker's thread runs its worker. A thread that ends in another way,
// because a fiber called pthread_exit() or another thread cancelled it, would silently be missing
// for all fibers. The process aborts with a message instead. A call of exit() by a fiber is not
// such a case, although it destroys the thread's variables, too.
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
