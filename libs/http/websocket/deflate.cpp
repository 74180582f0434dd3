#include "libs/http/websocket/deflate.hpp"

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/list_items.hpp"

#ifdef WEFT_HAS_ZLIB
#include <zlib.h>

#include <array>
#include <weft/detail/waist.hpp>
#endif

namespace weft::http {

#ifdef WEFT_HAS_ZLIB
namespace {

constexpr int kLargestWindow = 15;
constexpr std::size_t kMessagePiece = 32 * 1024;
// No message contains these bytes at its end (7.2.1).
constexpr std::string_view kTail("\0\0\xff\xff", 4);

Bytef* bytes_of(const char* text) noexcept {
  // zlib does not write to its input, although the type of the pointer would allow it.
  return reinterpret_cast<Bytef*>(const_cast<char*>(text));
}

void set_input(z_stream& stream, std::string_view piece) noexcept {
  stream.next_in = bytes_of(piece.data());
  stream.avail_in = static_cast<uInt>(piece.size());
}

// Decompresses a piece. A message may contain final blocks that are followed by other blocks
// (7.2.3.4).
Inflated inflate_piece(z_stream& stream, std::string_view piece, std::size_t most,
                       std::string& out) {
  std::array<char, 4096> room;
  set_input(stream, piece);
  do {
    stream.next_out = bytes_of(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    const int outcome = ::inflate(&stream, Z_SYNC_FLUSH);
    const std::size_t count = room.size() - stream.avail_out;
    if (count > most - out.size()) return Inflated::too_large;
    out.append(room.data(), count);
    if (outcome == Z_STREAM_END) {
      if (inflateReset(&stream) != Z_OK) return Inflated::corrupt;
    } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
      return Inflated::corrupt;
    }
  } while (stream.avail_out == 0 || stream.avail_in > 0);
  return Inflated::well;
}

struct Inflater {
  ~Inflater() { (void)inflateEnd(&stream); }
  z_stream stream{};
};
struct Deflater {
  ~Deflater() { (void)deflateEnd(&stream); }
  z_stream stream{};
};

}  // namespace

bool can_deflate() noexcept { return true; }

Inflated inflate_message(std::string_view compressed, std::size_t most, std::string& out) {
  Inflater inflater;
  if (inflateInit2(&inflater.stream, -kLargestWindow) != Z_OK) return Inflated::corrupt;
  while (!compressed.empty()) {
    const std::string_view piece = compressed.substr(0, kMessagePiece);
    compressed.remove_prefix(piece.size());
    const Inflated outcome = inflate_piece(inflater.stream, piece, most, out);
    if (outcome != Inflated::well) return outcome;
    detail::give_way_if_due();
  }
  const Inflated outcome = inflate_piece(inflater.stream, kTail, most, out);
  constexpr int kBetweenBlocks = 128;
  const bool is_whole = (inflater.stream.data_type & kBetweenBlocks) != 0;
  return outcome == Inflated::well && !is_whole ? Inflated::corrupt : outcome;
}

bool deflate_message(std::string_view text, int window_bits, std::string& out) {
  constexpr int kLevel = 5;
  constexpr int kMemoryLevel = 8;
  Deflater deflater;
  z_stream& stream = deflater.stream;
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, -window_bits, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return false;
  }
  std::array<char, 4096> room;
  do {
    const std::string_view piece = text.substr(0, kMessagePiece);
    text.remove_prefix(piece.size());
    set_input(stream, piece);
    do {
      stream.next_out = bytes_of(room.data());
      stream.avail_out = static_cast<uInt>(room.size());
      (void)::deflate(&stream, text.empty() ? Z_SYNC_FLUSH : Z_NO_FLUSH);
      out.append(room.data(), room.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    detail::give_way_if_due();
  } while (!text.empty());
  if (out.ends_with(kTail)) out.resize(out.size() - kTail.size());
  return true;
}

#else

bool can_deflate() noexcept { return false; }
Inflated inflate_message(std::string_view, std::size_t, std::string&) { return Inflated::corrupt; }
bool deflate_message(std::string_view, int, std::string&) { return false; }

#endif

namespace {

// Parses 8 to 15, perhaps in quotes; returns 0 for anything else.
int parse_bits(std::string_view text) noexcept {
  if (text.size() > 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  if (text == "8" || text == "9") return text[0] - '0';
  const bool is_two = text.size() == 2 && text[0] == '1' && is_digit(text[1]) && text[1] <= '5';
  return is_two ? 10 + (text[1] - '0') : 0;
}

// Reads the parameters of one offer; each may appear once.
struct OfferReader {
  bool server_resets = false;
  bool client_resets = false;
  bool has_client_bits = false;
  int server_bits = 0;

  [[nodiscard]] bool take(std::string_view parameter) noexcept {
    const std::size_t at = parameter.find('=');
    const bool has_value = at != std::string_view::npos;
    const std::string_view name = trimmed(parameter.substr(0, at));
    const int bits = has_value ? parse_bits(trimmed(parameter.substr(at + 1))) : 0;
    if (name == "server_no_context_takeover") return !has_value && set(server_resets);
    if (name == "client_no_context_takeover") return !has_value && set(client_resets);
    if (name == "client_max_window_bits") return (!has_value || bits != 0) && set(has_client_bits);
    if (name != "server_max_window_bits" || server_bits != 0) return false;
    server_bits = bits;
    return bits > 8;  // zlib supports no smaller window.
  }
  [[nodiscard]] static bool set(bool& flag) noexcept {
    const bool is_first = !flag;
    flag = true;
    return is_first;
  }
};

// Returns false for an offer of another extension, or one that we cannot serve.
bool read_offer(std::string_view offer, OfferReader& reader) noexcept {
  bool is_served = take_part(offer) == "permessage-deflate";
  while (is_served && !offer.empty()) is_served = reader.take(take_part(offer));
  return is_served;
}

}  // namespace

bool accepts_deflate(std::string_view answer) noexcept {
  OfferReader reader;
  return can_deflate() && read_offer(answer, reader) && reader.server_resets &&
         !reader.has_client_bits;
}

std::optional<DeflateTerms> select_deflate(std::string_view offers) {
  while (can_deflate() && !offers.empty()) {
    OfferReader reader;
    if (!read_offer(take_item(offers), reader)) continue;
    DeflateTerms terms;
    terms.answer = kDeflateOffer;
    if (reader.server_bits != 0) {
      terms.server_bits = reader.server_bits;
      terms.answer += "; server_max_window_bits=" + std::to_string(reader.server_bits);
    }
    return terms;
  }
  return std::nullopt;
}

}  // namespace weft::http
