// A name server that does not answer.
#pragma once

namespace weft::test {

// While it lives, whoever calls getaddrinfo for "held.test" waits inside, and is told in the end
// that there is no such name. One at a time.
class HeldLookUps {
 public:
  HeldLookUps() noexcept;
  ~HeldLookUps();
  HeldLookUps(const HeldLookUps&) = delete;
  HeldLookUps& operator=(const HeldLookUps&) = delete;
  // Waits until so many calls have come since it was made. Blocks the thread.
  void await(int count) const;
};

}  // namespace weft::test
