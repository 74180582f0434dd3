// A name server that does not answer.
#pragma once

namespace weft::test {

// While it lives, a call to getaddrinfo for "held.test" waits inside, and finally returns that
// there is no such name. Only one may live at a time.
class HeldLookUps {
 public:
  HeldLookUps() noexcept;
  ~HeldLookUps();
  HeldLookUps(const HeldLookUps&) = delete;
  HeldLookUps& operator=(const HeldLookUps&) = delete;
  // Waits until `count` calls have come since it was made. Blocks the thread.
  void await(int count) const;
};

}  // namespace weft::test
