// Represents an address for connections between processes on the same machine.
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
  // Makes an unnamed address, like the address of an unbound socket.
  UnixAddress() noexcept = default;

  // Makes the address of a socket file.
  // Errors: std::errc::filename_too_long if the path is longer than 107 bytes; invalid_argument if
  // the path is empty or contains a zero byte.
  static Result<UnixAddress> path(std::string_view path) noexcept;
  // Makes an address with an abstract name, which needs no file and disappears with its socket. Any
  // process in the same network namespace may connect to it. The name may contain any bytes.
  // Errors: filename_too_long if the name is longer than 107 bytes.
  static Result<UnixAddress> abstract(std::string_view name) noexcept;

  // Returns whether the address has no path and no abstract name, as is usual for a client.
  [[nodiscard]] bool is_unnamed() const noexcept { return name_size_ == 0 && !abstract_; }
  // Returns whether the address is an abstract name.
  [[nodiscard]] bool is_abstract() const noexcept { return abstract_; }
  // Returns the path or the abstract name.
  [[nodiscard]] std::string_view name() const noexcept;
  // Returns the path, or '@' and the abstract name. An unnamed address yields an empty string.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const UnixAddress& left, const UnixAddress& right) noexcept {
    return left.abstract_ == right.abstract_ && left.name() == right.name();
  }

  // Returns the sockaddr_un, for system calls that weft does not wrap.
  [[nodiscard]] const void* system_data() const noexcept { return storage_.data(); }
  // Returns the size of system_data() in bytes.
  [[nodiscard]] std::size_t system_size() const noexcept;
  // Converts an AF_UNIX sockaddr. For other families, returns address_family_not_supported.
  static Result<UnixAddress> from_system(const void* data, std::size_t size) noexcept;

 private:
  // The size of a sockaddr_un (a family of 2 bytes, then the name); a static_assert checks it.
  static constexpr std::size_t kStorage = 110;

  static UnixAddress of(std::string_view name, std::size_t at) noexcept;

  alignas(std::uint16_t) std::array<std::byte, kStorage> storage_ = unnamed();
  std::uint8_t name_size_ = 0;
  bool abstract_ = false;  // Whether a zero byte precedes the name.

  static std::array<std::byte, kStorage> unnamed() noexcept;
};

}  // namespace weft::net
