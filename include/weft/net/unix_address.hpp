// Where an end of a connection within this machine is found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <weft/net/result.hpp>

namespace weft::net {

// The address of a Unix socket: a path, an abstract name, or none. A plain value; never parks.
class UnixAddress {
 public:
  // None: that of a socket which was not bound.
  UnixAddress() noexcept = default;

  // A file. Errors: std::errc::filename_too_long beyond 107 bytes; invalid_argument for an empty
  // path, or one with a zero byte.
  static Result<UnixAddress> path(std::string_view path) noexcept;
  // A name without a file, which goes with its socket; any process on the machine (in the network
  // namespace) may connect to it. It takes any bytes. Errors: filename_too_long beyond 107 bytes.
  static Result<UnixAddress> abstract(std::string_view name) noexcept;

  // Whether it has neither a path nor an abstract name, as the end that connects has.
  [[nodiscard]] bool is_unnamed() const noexcept { return name_size_ == 0 && !abstract_; }
  // Whether it is a name without a file.
  [[nodiscard]] bool is_abstract() const noexcept { return abstract_; }
  // The path, or the abstract name.
  [[nodiscard]] std::string_view name() const noexcept;
  // The path; '@' and an abstract name; or nothing.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const UnixAddress& left, const UnixAddress& right) noexcept {
    return left.abstract_ == right.abstract_ && left.name() == right.name();
  }

  // The system's form, a sockaddr_un, for calls that weft does not wrap.
  [[nodiscard]] const void* system_data() const noexcept { return storage_.data(); }
  // The size of what system_data() points to, in bytes.
  [[nodiscard]] std::size_t system_size() const noexcept;
  // std::errc::address_family_not_supported for other families.
  static Result<UnixAddress> from_system(const void* data, std::size_t size) noexcept;

 private:
  // As large as a sockaddr_un, which the source file checks: a family of 2 bytes, then the name.
  static constexpr std::size_t kStorage = 110;

  static UnixAddress of(std::string_view name, std::size_t at) noexcept;

  alignas(std::uint16_t) std::array<std::byte, kStorage> storage_ = unnamed();
  std::uint8_t name_size_ = 0;
  bool abstract_ = false;  // The name stands behind a zero byte.

  static std::array<std::byte, kStorage> unnamed() noexcept;
};

}  // namespace weft::net
