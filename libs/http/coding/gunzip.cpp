#include "libs/http/coding/gunzip.hpp"

#ifdef WEFT_HAS_ZLIB
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <weft/http/error.hpp>
#endif

namespace weft::http {

#ifdef WEFT_HAS_ZLIB
namespace {

// 15 selects the largest window of zlib (2^15 bytes), and 16 selects the gzip format.
constexpr int kWindowWithHeader = 15 + 16;

class ZlibGunzip final : public Gunzip {
 public:
  // Initializes zlib. Returns false if this fails.
  [[nodiscard]] bool begin() noexcept {
    ready_ = inflateInit2(&stream_, kWindowWithHeader) == Z_OK;
    return ready_;
  }
  ~ZlibGunzip() override {
    if (ready_) (void)inflateEnd(&stream_);
  }

  std::span<std::byte> room() noexcept override { return input_; }
  void add(std::size_t size) noexcept override {
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(size);
  }

  net::Result<std::size_t> take(std::span<std::byte> buffer) noexcept override {
    const std::size_t most = std::min<std::size_t>(buffer.size(), std::numeric_limits<int>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(most);
    while (stream_.avail_out > 0) {
      if (is_complete_) {
        if (stream_.avail_in == 0) break;
        (void)inflateReset(&stream_);  // The next gzip member begins.
        is_complete_ = false;
      }
      const int outcome = inflate(&stream_, Z_NO_FLUSH);
      is_complete_ = outcome == Z_STREAM_END;
      if (outcome == Z_BUF_ERROR) break;
      if (outcome == Z_MEM_ERROR)
        return {.error = std::make_error_code(std::errc::not_enough_memory)};
      if (outcome != Z_OK && outcome != Z_STREAM_END) return {.error = Errc::malformed_coding};
    }
    return {.value = most - stream_.avail_out};
  }

  bool is_complete() const noexcept override { return is_complete_; }

 private:
  std::array<std::byte, 4096> input_;
  z_stream stream_{};
  bool ready_ = false;
  bool is_complete_ = true;
};

}  // namespace

std::unique_ptr<Gunzip> Gunzip::make() noexcept {
  std::unique_ptr<ZlibGunzip> gunzip(new (std::nothrow) ZlibGunzip);
  if (gunzip != nullptr && !gunzip->begin()) gunzip.reset();
  return gunzip;
}

bool Gunzip::is_built_in() noexcept { return true; }

#else

std::unique_ptr<Gunzip> Gunzip::make() noexcept { return nullptr; }
bool Gunzip::is_built_in() noexcept { return false; }

#endif

}  // namespace weft::http
