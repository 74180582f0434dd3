// Owns a file descriptor.
#pragma once

#include <utility>

namespace weft {

// Owns an open descriptor and closes it in the destructor. It is move-only, and as small as an int.
// A fiber cannot wait for events on a Descriptor; use net::TcpStream, io::Watch or a similar type.
// Context: plain value; no call parks or throws.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  // Takes ownership of `descriptor`; -1 means no descriptor.
  explicit Descriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  // Closes the current descriptor, and takes the descriptor of `other`.
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = other.release();
    }
    return *this;
  }
  // Closes the descriptor if there is one.
  ~Descriptor() { reset(); }

  // Returns the descriptor, or -1 if there is none.
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  // Returns whether this object owns a descriptor.
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  // Gives the descriptor to the caller, which must then close it.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }
  // Closes the descriptor now.
  void reset() noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace weft
