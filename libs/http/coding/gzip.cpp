#include "libs/http/coding/gzip.hpp"

#ifdef WEFT_HAS_ZLIB
#include <zlib.h>

#include <array>
#include <new>
#include <weft/detail/turn.hpp>
#endif

namespace weft::http {

#ifdef WEFT_HAS_ZLIB
namespace {

constexpr int kGzipWindow = 15 + 16;  // 15 is the largest window; 16 adds gzip's header.
constexpr int kMemory = 8;            // zlib's default.
constexpr std::size_t kPiece = 32 * 1024;

class ZlibGzip final : public Gzip {
 public:
  // Initializes zlib. Returns false if this fails.
  [[nodiscard]] bool begin(int level) noexcept {
    ready_ =
        deflateInit2(&stream_, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) == Z_OK;
    return ready_;
  }
  ~ZlibGzip() override {
    if (ready_) (void)deflateEnd(&stream_);
  }

  void add(std::string_view text, Then then, std::string& compressed) override {
    for (;;) {
      const std::string_view piece = text.substr(0, kPiece);
      text.remove_prefix(piece.size());
      deflate_piece(piece, text.empty() ? then : Then::more, compressed);
      if (text.empty()) return;
      detail::give_way_if_due();
    }
  }

 private:
  void deflate_piece(std::string_view piece, Then then, std::string& compressed) {
    std::array<char, 4096> room;
    // zlib does not write to its input, although the pointer's type would allow writes.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    int flush = Z_NO_FLUSH;
    if (then == Then::flush) flush = Z_SYNC_FLUSH;
    if (then == Then::end) flush = Z_FINISH;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(room.data());
      stream_.avail_out = static_cast<uInt>(room.size());
      // The result is ignored, because the output is complete once deflate() does not fill `room`.
      (void)::deflate(&stream_, flush);
      compressed.append(room.data(), room.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

std::unique_ptr<Gzip> Gzip::make(int level) noexcept {
  std::unique_ptr<ZlibGzip> gzip(new (std::nothrow) ZlibGzip);
  if (gzip != nullptr && !gzip->begin(level)) gzip.reset();
  return gzip;
}

bool Gzip::is_built_in() noexcept { return true; }

#else

std::unique_ptr<Gzip> Gzip::make(int /*level*/) noexcept { return nullptr; }
bool Gzip::is_built_in() noexcept { return false; }

#endif

}  // namespace weft::http
