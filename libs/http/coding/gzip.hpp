// Compresses data with gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weft::http {

// Compresses a series of strings into one gzip stream. Only one fiber at a time may use a Gzip.
class Gzip {
 public:
  enum class Then : std::uint8_t {
    more,   // More text follows; the compressor may keep bytes that do not fill a block.
    flush,  // Decompressing the output so far yields the whole input so far.
    end,    // No text follows.
  };

  // Returns null if the library is built without zlib, or if memory runs out.
  [[nodiscard]] static std::unique_ptr<Gzip> make(int level) noexcept;
  [[nodiscard]] static bool is_built_in() noexcept;
  virtual ~Gzip() = default;
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  // Compresses `text`, and appends the result to `compressed`. Yields to other fibers while it
  // compresses a long string.
  virtual void add(std::string_view text, Then then, std::string& compressed) = 0;

 protected:
  Gzip() noexcept = default;
};

}  // namespace weft::http
