#include <weft/net/unix_address.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace weft::net {

namespace {

constexpr std::size_t kName = offsetof(sockaddr_un, sun_path);
// One byte remains for the zero at the end of a path, or before an abstract name.
constexpr std::size_t kMostName = sizeof(sockaddr_un) - kName - 1;

Result<UnixAddress> refused(std::errc error) noexcept {
  return {.error = std::make_error_code(error)};
}

}  // namespace

std::array<std::byte, UnixAddress::kStorage> UnixAddress::unnamed() noexcept {
  static_assert(kStorage == sizeof(sockaddr_un) && alignof(sockaddr_un) <= alignof(UnixAddress));
  std::array<std::byte, kStorage> storage{};
  const sa_family_t family = AF_UNIX;
  std::memcpy(storage.data(), &family, sizeof family);
  return storage;
}

UnixAddress UnixAddress::of(std::string_view name, std::size_t at) noexcept {
  UnixAddress address;
  if (!name.empty()) std::memcpy(address.storage_.data() + kName + at, name.data(), name.size());
  address.name_size_ = static_cast<std::uint8_t>(name.size());
  address.abstract_ = at == 1;
  return address;
}

Result<UnixAddress> UnixAddress::path(std::string_view path) noexcept {
  if (path.size() > kMostName) return refused(std::errc::filename_too_long);
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    return refused(std::errc::invalid_argument);
  }
  return {.value = of(path, 0)};
}

Result<UnixAddress> UnixAddress::abstract(std::string_view name) noexcept {
  if (name.size() > kMostName) return refused(std::errc::filename_too_long);
  return {.value = of(name, 1)};
}

std::string_view UnixAddress::name() const noexcept {
  const auto* first = reinterpret_cast<const char*>(storage_.data()) + kName;
  return {first + (abstract_ ? 1 : 0), name_size_};
}

std::string UnixAddress::to_string() const {
  std::string text(abstract_ ? 1 : 0, '@');
  return text.append(name());
}

std::size_t UnixAddress::system_size() const noexcept {
  if (is_unnamed()) return kName;
  return kName + 1 + name_size_;  // The zero after a path, or before an abstract name.
}

Result<UnixAddress> UnixAddress::from_system(const void* data, std::size_t size) noexcept {
  sa_family_t family = AF_UNSPEC;
  if (size >= sizeof family) std::memcpy(&family, data, sizeof family);
  if (family != AF_UNIX) return refused(std::errc::address_family_not_supported);
  const std::string_view name(static_cast<const char*>(data) + kName,
                              std::min(size, kStorage) - kName);
  if (name.empty()) return {};
  if (name.front() == '\0') return {.value = of(name.substr(1), 1)};
  return {.value = of(name.substr(0, std::min(name.find('\0'), kMostName)), 0)};
}

}  // namespace weft::net
