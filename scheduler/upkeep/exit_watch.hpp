// A watch on what ends a worker's thread behind its back.
#pragma once

#include <cstdint>

namespace weft::scheduler {

// In the frame in which a worker's thread runs its worker. A thread that is ended otherwise,
// because a fiber called pthread_exit() or another thread cancelled it, would be missed by all
// fibers without a word. The process ends with a message instead. A call of exit() by a fiber is
// none of this, although it destroys the thread's variables, too.
class ExitWatch {
 public:
  // A scope in which exit() may be called on the worker's own stack, by a handler of the user's.
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
