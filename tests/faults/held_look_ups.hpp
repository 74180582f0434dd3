// Simulates a name server that does not answer.
#pragma once

namespace weft::test {

// While an object lives, each call to getaddrinfo for "held.test" waits; afterwards the call
// reports that there is no such name. Only one object may live at a time.
class HeldLookUps {
 public:
  HeldLookUps() noexcept;
  ~HeldLookUps();
  HeldLookUps(const HeldLookUps&) = delete;
  HeldLookUps& operator=(const HeldLookUps&) = delete;
  // Waits until `count` such calls have arrived since the construction of this object. Blocks the
  // thread.
  void await(int count) const;
};

}  // namespace weft::test
