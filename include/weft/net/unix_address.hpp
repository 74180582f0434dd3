// Represents the address of one end of a connection within this machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <weft/net/result.hpp>

namespace weft::net {

// Holds the address of a Unix socket: a path, an abstract name, or neither.
// Context: plain value.
class UnixAddress {
 public:
  // Makes an unnamed address, as of an unbound socket.
  UnixAddress() noexcept = default;

  // Makes the address of a socket file.
  // Errors: std::errc::filename_too_long above 107 bytes; invalid_argument for an empty path, or a
  // path with a zero byte.
  static Result<UnixAddress> path(std::string_view path) noexcept;
  // Makes an abstract name, which needs no file and disappears with its socket. Any process of the
  // network namespace may connect to it. The name may contain any bytes.
  // Errors: filename_too_long above 107 bytes.
  static Result<UnixAddress> abstract(std::string_view name) noexcept;

  // Returns whether there is no path and no abstract name, as usual for the end that connects.
  [[nodiscard]] bool is_unnamed() const noexcept { return name_size_ == 0 && !abstract_; }
  // Returns whether the address is an abstract name.
  [[nodiscard]] bool is_abstract() const noexcept { return abstract_; }
  // Returns the path or the abstract name.
  [[nodiscard]] std::string_view name() const noexcept;
  // Returns the path, or '@' and the abstract name, or an empty text.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const UnixAddress& left, const UnixAddress& right) noexcept {
    return left.abstract_ == right.abstract_ && left.name() == right.name();
  }

  // Returns the sockaddr_un, for system calls that weft does not wrap.
  [[nodiscard]] const void* system_data() const noexcept { return storage_.data(); }
  // Returns the size of system_data() in bytes.
  [[nodiscard]] std::size_t system_size() const noexcept;
  // Converts a sockaddr. Returns std::errc::address_family_not_supported for other families.
  static Result<UnixAddress> from_system(const void* data, std::size_t size) noexcept;

 private:
  // The size of a sockaddr_un (a family of 2 bytes, then the name); the source file checks this.
  static constexpr std::size_t kStorage = 110;

  static UnixAddress of(std::string_view name, std::size_t at) noexcept;

  alignas(std::uint16_t) std::array<std::byte, kStorage> storage_ = unnamed();
  std::uint8_t name_size_ = 0;
  bool abstract_ = false;  // The name follows a zero byte.

  static std::array<std::byte, kStorage> unnamed() noexcept;
};

}  // namespace weft::net
