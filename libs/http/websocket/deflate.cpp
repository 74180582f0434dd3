#include "libs/http/websocket/deflate.hpp"

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/list_items.hpp"

#ifdef WEFT_HAS_ZLIB
#include <zlib.h>

#include <array>
#include <weft/detail/turn.hpp>
#endif

namespace weft::http {

#ifdef WEFT_HAS_ZLIB
namespace {

constexpr int kLargestWindow = 15;
constexpr std::size_t kMessagePiece = 32 * 1024;
// A sender removes these bytes from the end of each message (RFC 7692, 7.2.1).
constexpr std::string_view kTail("\0\0\xff\xff", 4);

Bytef* bytes_of(const char* text) noexcept {
  // zlib does not write to its input, although the pointer's type would allow writes.
  return reinterpret_cast<Bytef*>(const_cast<char*>(text));
}

void set_input(z_stream& stream, std::string_view piece) noexcept {
  stream.next_in = bytes_of(piece.data());
  stream.avail_in = static_cast<uInt>(piece.size());
}

// Decompresses a piece of a message. The message may have further blocks after a block that is
// marked as final (RFC 7692, 7.2.3.4).
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
      // This call keeps the window, because later blocks may refer to the window.
      if (inflateResetKeep(&stream) != Z_OK) return Inflated::corrupt;
    } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
      return Inflated::corrupt;
    }
  } while (stream.avail_out == 0 || stream.avail_in > 0);
  return Inflated::well;
}

}  // namespace

bool can_deflate() noexcept { return true; }

struct MessageInflater::Stream {
  ~Stream() { (void)inflateEnd(&zlib); }
  z_stream zlib{};
};

Inflated MessageInflater::inflate(std::string_view compressed, std::size_t most, std::string& out) {
  if (stream_ == nullptr) {
    stream_ = std::make_unique<Stream>();
    if (inflateInit2(&stream_->zlib, -kLargestWindow) != Z_OK) return Inflated::corrupt;
  }
  z_stream& zlib = stream_->zlib;
  while (!compressed.empty()) {
    const std::string_view piece = compressed.substr(0, kMessagePiece);
    compressed.remove_prefix(piece.size());
    const Inflated outcome = inflate_piece(zlib, piece, most, out);
    if (outcome != Inflated::well) return outcome;
    detail::give_way_if_due();
  }
  const Inflated outcome = inflate_piece(zlib, kTail, most, out);
  constexpr int kBetweenBlocks = 128;
  const bool is_whole = (zlib.data_type & kBetweenBlocks) != 0;
  if (context_ == DeflateContext::dropped) stream_.reset();
  return outcome == Inflated::well && !is_whole ? Inflated::corrupt : outcome;
}

struct MessageDeflater::Stream {
  ~Stream() { (void)deflateEnd(&zlib); }
  z_stream zlib{};
};

bool MessageDeflater::deflate(std::string_view text, std::string& out) {
  constexpr int kLevel = 5;
  constexpr int kMemoryLevel = 8;
  if (stream_ == nullptr) {
    auto made = std::make_unique<Stream>();
    if (deflateInit2(&made->zlib, kLevel, Z_DEFLATED, -window_bits_, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      return false;
    }
    stream_ = std::move(made);
  }
  z_stream& zlib = stream_->zlib;
  std::array<char, 4096> room;
  do {
    const std::string_view piece = text.substr(0, kMessagePiece);
    text.remove_prefix(piece.size());
    set_input(zlib, piece);
    do {
      zlib.next_out = bytes_of(room.data());
      zlib.avail_out = static_cast<uInt>(room.size());
      (void)::deflate(&zlib, text.empty() ? Z_SYNC_FLUSH : Z_NO_FLUSH);
      out.append(room.data(), room.size() - zlib.avail_out);
    } while (zlib.avail_out == 0);
    detail::give_way_if_due();
  } while (!text.empty());
  if (out.ends_with(kTail)) out.resize(out.size() - kTail.size());
  if (context_ == DeflateContext::dropped) stream_.reset();
  return true;
}

#else

bool can_deflate() noexcept { return false; }
struct MessageInflater::Stream {};
Inflated MessageInflater::inflate(std::string_view, std::size_t, std::string&) {
  return Inflated::corrupt;
}
struct MessageDeflater::Stream {};
bool MessageDeflater::deflate(std::string_view, std::string&) { return false; }

#endif

MessageInflater::MessageInflater(DeflateContext context) noexcept : context_(context) {}
MessageInflater::~MessageInflater() = default;
MessageDeflater::MessageDeflater(int window_bits, DeflateContext context) noexcept
    : window_bits_(window_bits), context_(context) {}
MessageDeflater::~MessageDeflater() = default;
void MessageDeflater::forget() noexcept { stream_.reset(); }

namespace {

// Parses a number from 8 to 15, possibly in quotes; returns 0 for any other string.
int parse_bits(std::string_view text) noexcept {
  if (text.size() > 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  if (text == "8" || text == "9") return text[0] - '0';
  const bool is_two = text.size() == 2 && text[0] == '1' && is_digit(text[1]) && text[1] <= '5';
  return is_two ? 10 + (text[1] - '0') : 0;
}

// Reads the parameters of one offer; each parameter may appear once.
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
    return bits > 8;  // zlib does not support an 8-bit window.
  }
  [[nodiscard]] static bool set(bool& flag) noexcept {
    const bool is_first = !flag;
    flag = true;
    return is_first;
  }
};

// Reads an offer. Returns false for another extension's offer, and for unsupported parameters.
bool read_offer(std::string_view offer, OfferReader& reader) noexcept {
  bool is_served = take_part(offer) == "permessage-deflate";
  while (is_served && !offer.empty()) is_served = reader.take(take_part(offer));
  return is_served;
}

DeflateContext context_after(bool resets, DeflateContext context) noexcept {
  return resets ? DeflateContext::dropped : context;
}

}  // namespace

std::string_view deflate_offer(DeflateContext context) noexcept {
  return context == DeflateContext::kept
             ? "permessage-deflate"
             : "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
}

std::optional<DeflateTerms> accept_deflate(std::string_view answer, DeflateContext context) {
  OfferReader reader;
  const bool is_accepted = can_deflate() && read_offer(answer, reader) && !reader.has_client_bits &&
                           (context == DeflateContext::kept || reader.server_resets);
  if (!is_accepted) return std::nullopt;
  return DeflateTerms{.send = context_after(reader.client_resets, context),
                      .receive = context_after(reader.server_resets, context)};
}

std::optional<DeflateTerms> select_deflate(std::string_view offers, DeflateContext context) {
  while (can_deflate() && !offers.empty()) {
    OfferReader reader;
    if (!read_offer(take_item(offers), reader)) continue;
    DeflateTerms terms{.send = context_after(reader.server_resets, context),
                       .receive = context_after(reader.client_resets, context),
                       .answer = "permessage-deflate"};
    if (terms.send == DeflateContext::dropped) terms.answer += "; server_no_context_takeover";
    if (terms.receive == DeflateContext::dropped) terms.answer += "; client_no_context_takeover";
    if (reader.server_bits != 0) {
      terms.send_bits = reader.server_bits;
      terms.answer += "; server_max_window_bits=" + std::to_string(reader.server_bits);
    }
    return terms;
  }
  return std::nullopt;
}

}  // namespace weft::http
