// A compressor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weft::http {

// Makes one gzip stream of the texts that it is given. Without zlib, make() has none to give.
// Used by one fiber at a time.
class Gzip {
 public:
  enum class Then : std::uint8_t {
    more,   // Bytes that do not fill a block yet may stay inside.
    flush,  // All can be decompressed from what has come out.
    end,    // Nothing follows.
  };

  // Null: there is no zlib, or no memory.
  [[nodiscard]] static std::unique_ptr<Gzip> make(int level) noexcept;
  [[nodiscard]] static bool is_built_in() noexcept;
  virtual ~Gzip() = default;
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  // Appends to `compressed`. Other fibers have a turn while a large text is compressed.
  virtual void add(std::string_view text, Then then, std::string& compressed) = 0;

 protected:
  Gzip() noexcept = default;
};

}  // namespace weft::http
