// Fuzzes chunked bodies: the data must be the same however the bytes are split, and however few
// bytes a caller requests at a time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "libs/http/wire/chunk_decoder.hpp"

namespace {

using weft::http::ChunkDecoder;

struct Outcome {
  ChunkDecoder::State state = ChunkDecoder::State::wants_more;
  std::string data;
  std::size_t consumed = 0;
  std::size_t trailers = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome decode(std::string_view text, std::size_t portion, std::size_t at_most) {
  ChunkDecoder decoder(512, 8);
  Outcome outcome;
  while (outcome.consumed < text.size()) {
    const auto step = decoder.next(text.substr(outcome.consumed, portion), at_most);
    outcome.state = step.state;
    outcome.consumed += step.consumed;
    if (step.state == ChunkDecoder::State::data) {
      if (step.data.empty() || step.data.size() > at_most) std::abort();
      outcome.data += step.data;
      continue;
    }
    if (step.state != ChunkDecoder::State::wants_more) break;
    if (step.consumed == 0) std::abort();  // The loop would never end.
  }
  if (outcome.state == ChunkDecoder::State::data) outcome.state = ChunkDecoder::State::wants_more;
  if (outcome.state == ChunkDecoder::State::end) outcome.trailers = decoder.trailers().size();
  // The position at which the error was found depends on the portions.
  if (outcome.state != ChunkDecoder::State::end) outcome.consumed = 0;
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t portion = 1 + data[0] % 64;
  const std::size_t at_most = 1 + data[1] % 64;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (decode(text, SIZE_MAX, SIZE_MAX) != decode(text, portion, at_most)) std::abort();
  return 0;
}
