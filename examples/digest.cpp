#include "digest.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>

namespace examples {

namespace {

std::error_code last_error() { return {errno, std::system_category()}; }

// Owns an open file.
class File {
 public:
  explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  const int descriptor_;
};

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    check(context_ ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
  }
  void add(const unsigned char* data, std::size_t size) {
    check(EVP_DigestUpdate(context_.get(), data, size));
  }
  [[nodiscard]] std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    check(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size));
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  // libcrypto fails here only if memory runs out.
  static void check(int result) {
    if (result != 1) throw std::bad_alloc();
  }

  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// O_NONBLOCK is needed because the path may have become a named pipe since the check: open() would
// wait for a writer.
int open_flags(Links links) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  return links == Links::refuse ? flags | O_NOFOLLOW : flags;
}

std::error_code check_regular(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return last_error();
  if (S_ISREG(status.st_mode)) return {};
  return std::make_error_code(std::errc::not_supported);
}

}  // namespace

std::pair<Digest, std::error_code> digest_of_file(const std::string& path, Links links) {
  const File file(::open(path.c_str(), open_flags(links)));
  if (file.descriptor() < 0) return {{}, last_error()};
  if (const auto error = check_regular(file.descriptor())) return {{}, error};

  // The buffer is on the heap, because the whole stack of a fiber is about as large.
  constexpr std::size_t kBuffer = 65'536;
  const auto buffer = std::make_unique_for_overwrite<unsigned char[]>(kBuffer);
  Sha256 sha256;
  Digest digest;
  for (;;) {
    const ssize_t count = ::read(file.descriptor(), buffer.get(), kBuffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {{}, last_error()};
    if (count == 0) break;
    sha256.add(buffer.get(), static_cast<std::size_t>(count));
    digest.bytes += static_cast<std::uint64_t>(count);
  }
  digest.hex = sha256.hex();
  return {std::move(digest), {}};
}

std::string escaped(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  for (const char c : path) {
    switch (c) {
      case '\\':
        text += "\\\\";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      default:
        text += c;
    }
  }
  return text;
}

std::string checksum_line(std::string_view hex, std::string_view path) {
  const std::string name = escaped(path);
  return fmt::format("{}{}  {}\n", name.size() == path.size() ? "" : "\\", hex, name);
}

}  // namespace examples
