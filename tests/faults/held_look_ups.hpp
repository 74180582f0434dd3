// A name server that does not answer.
#pragma once

namespace weft::test {

// While it lives, each call to getaddrinfo for "held.test" waits; afterwards the call reports that
// there is no such name. Only one may live at a time.
class HeldLookUps {
 public:
  HeldLookUps() noexcept;
  ~HeldLookUps();
  HeldLookUps(const HeldLookUps&) = delete;
  HeldLookUps& operator=(const HeldLookUps&) = delete;
  // Waits until `count` calls have arrived since its construction. Blocks the thread.
  void await(int count) const;
};

}  // namespace weft::test
