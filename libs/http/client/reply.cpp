#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <weft/detail/invariant.hpp>
#include <weft/error.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>

#include "libs/http/client/reply_state.hpp"
#include "libs/http/wire/head_repair.hpp"

namespace weft::http {

namespace {

bool is_gzip(std::span<const Header> headers) noexcept {
  std::size_t codings = 0;
  bool is_known = false;
  for (const Header& header : headers) {
    if (!equal_tokens(header.name, "content-encoding")) continue;
    is_known = equal_tokens(header.value, "gzip") || equal_tokens(header.value, "x-gzip");
    ++codings;
  }
  return codings == 1 && is_known;
}

// Provides the bytes of a body to Body::read_some().
struct Source {
  ClientConnection& connection;
  std::size_t most;
  const Until& until;

  [[nodiscard]] std::string_view rest() const noexcept { return connection.input.rest(); }
  void consume(std::size_t size) noexcept { connection.input.consume(size); }
  net::Result<std::size_t> receive(std::span<std::byte> buffer) {
    return connection.read(buffer, until);
  }
  std::error_code receive_more() { return connection.receive(most, until); }
};

}  // namespace

Fault Reply::State::parse(std::string text) {
  text_ = std::move(text);
  std::size_t most = std::min(max_headers_, Limits::kMaxHeaders);
  if (max_headers_ > most) {
    const auto lines = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n'));
    if (lines > most) {
      most = std::min(max_headers_, lines);
      head_.make_room(most);
    }
  }
  const Fault fault = parse_response_head(text_, most, head_);
  if (fault != Errc::malformed_length || !merge_lengths(text_)) return fault;
  return parse_response_head(text_, most, head_);
}

void Reply::State::begin_body(Lease&& lease, std::string_view method) {
  WEFT_INVARIANT(has_texts(), "Reply::State I1: the texts of head_ are in text_");
  lease_.emplace(std::move(lease));
  if (method == "CONNECT" && head_.status < 300) {
    // The tunnel's bytes follow the head, whatever the headers specify (RFC 9112, 6.3).
    head_.framing = Framing::none;
    head_.has_length = head_.keep_alive = false;
  }
  if (method == "HEAD" || head_.status == 204 || head_.status == 304) head_.framing = Framing::none;
  body_ = Body(head_);
  if (head_.framing == Framing::chunked) {
    body_.decode_by({head_bytes_, max_headers_, ChunkDecoder::Folds::replaced});
  }
  // A 206 response contains only part of a body, and part of a compressed body cannot be
  // decompressed.
  constexpr int kPartial = 206;
  if (decompresses_ && !body_.over() && head_.status != kPartial && is_gzip(head_.headers())) {
    gunzip_ = Gunzip::make();
    if (gunzip_ == nullptr) throw std::bad_alloc();
  }
  if (body_.over()) end_body();
}

net::Result<std::size_t> Reply::State::read_some(std::span<std::byte> buffer, const Until& until) {
  if (gunzip_ == nullptr) return read_sent(buffer, until);
  if (error_ || buffer.empty()) return {.error = error_};
  for (bool is_first = true;; is_first = false) {
    const auto text = gunzip_->take(buffer);
    if (text.error) return fail(text.error);
    if (text.value > 0) return text;
    // Without this check, a server could extend the wait beyond `until` with empty gzip members.
    if (!is_first && until.is_over()) return {.error = until.reason()};
    const auto [count, error] = read_sent(gunzip_->room(), until);
    if (error == weft::Errc::end_of_stream && !gunzip_->is_complete()) {
      return fail(Errc::unexpected_end);
    }
    if (error) return {.error = error};
    gunzip_->add(count);
  }
}

net::Result<std::size_t> Reply::State::read_sent(std::span<std::byte> buffer, const Until& until) {
  if (error_) return {.error = error_};
  WEFT_INVARIANT(body_.over() || lease_.has_value(),
                 "Reply::State I2: an unfinished body has its connection");
  if (body_.over()) return {.error = weft::Errc::end_of_stream};
  Source source{**lease_, head_bytes_, until};
  const auto result = body_.read_some(buffer, source);
  if (body_.over()) {
    end_body();
  } else if (result.error) {
    return fail(result.error);
  }
  return result;
}

// Returns the connection to the pool only if its next bytes will be the next response.
void Reply::State::end_body() {
  const bool stays = head_.keep_alive && head_.framing != Framing::until_close;
  if (stays && (*lease_)->input.rest().empty()) lease_->keep();
  lease_.reset();
}

net::Result<std::size_t> Reply::State::fail(std::error_code error) {
  if (error == weft::Errc::timed_out || error == weft::Errc::cancelled) return {.error = error};
  error_ = error;
  lease_.reset();
  return {.error = error};
}

net::Result<std::string> Reply::State::read_all(const Until& until) {
  net::Result<std::string> all;
  if (head_.framing == Framing::length) {
    if (body_.left() > body_bytes_) return {.error = Errc::body_too_large};
    all.value.reserve(static_cast<std::size_t>(body_.left()));
  }
  std::array<char, 4096> part;
  for (;;) {
    const auto [count, error] = read_some(std::as_writable_bytes(std::span(part)), until);
    if (error == weft::Errc::end_of_stream) return all;
    if (error || all.value.size() + count > body_bytes_) {
      all.error = error ? error : make_error_code(Errc::body_too_large);
      return all;
    }
    all.value.append(part.data(), count);
    // Without this check, a server that always has more data could extend the wait beyond `until`.
    if (!body_.over() && until.is_over()) {
      all.error = until.reason();
      return all;
    }
  }
}

void Reply::State::discard(const Until& until) {
  constexpr std::size_t kMost = 64 * 1024;
  std::array<std::byte, 2048> dropped;
  for (std::size_t total = 0; total < kMost && !body_.over();) {
    const auto [count, error] = read_some(dropped, until);
    if (error || until.is_over()) return;
    total += count;
  }
}

Reply::Reply() noexcept = default;
Reply::Reply(Reply&& other) noexcept = default;
Reply& Reply::operator=(Reply&& other) noexcept = default;
Reply::~Reply() = default;
Reply::Reply(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

int Reply::status() const noexcept { return state_->head().status; }
std::span<const Header> Reply::headers() const noexcept { return state_->head().headers(); }

std::optional<std::string_view> Reply::header(std::string_view name) const noexcept {
  for (const Header& header : headers()) {
    if (equal_tokens(header.name, name)) return header.value;
  }
  return std::nullopt;
}

const Url& Reply::url() const noexcept { return state_->url(); }

std::optional<std::uint64_t> Reply::content_length() const noexcept {
  const Head& head = state_->head();
  if (head.status == 204) return 0;
  if (!head.has_length || state_->is_decompressed()) return std::nullopt;
  return head.content_length;
}

bool Reply::is_decompressed() const noexcept { return state_->is_decompressed(); }

net::Result<std::size_t> Reply::read_some(std::span<std::byte> buffer, const Until& until) {
  if (state_ == nullptr) return {.error = weft::Errc::closed};
  return state_->read_some(buffer, until);
}

net::Result<std::string> Reply::read_all(const Until& until) {
  if (state_ == nullptr) return {.error = weft::Errc::closed};
  return state_->read_all(until);
}

std::span<const Header> Reply::trailers() const noexcept { return state_->trailers(); }

}  // namespace weft::http
