// The ownership of a file descriptor.
#pragma once

#include <utility>

namespace weft {

// Owns an open descriptor, and closes it in the destructor. Move-only, and no wider than an int.
// Nothing waits for it; sockets, pipes and the like are waited for as net::TcpStream, io::Watch,
// ... From fibers and plain threads, by one at a time; calls neither park, throw nor synchronize.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  // Takes it over; the destructor closes it. -1 means that there is none.
  explicit Descriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  // Closes what it had; `other` has none then.
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = other.release();
    }
    return *this;
  }
  // Closes it, if there is one.
  ~Descriptor() { reset(); }

  // -1: there is none.
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  // Returns whether there is one.
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  // It is the caller's to close from now on.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }
  // Closes it now.
  void reset() noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace weft
