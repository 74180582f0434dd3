#include "libs/http/server/body_reader.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "libs/http/server/connection.hpp"
#include "libs/http/server/output.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/input.hpp"

namespace weft::http {

BodyReader::BodyReader(Connection& connection, Input& input, Output& output,
                       const Head& head) noexcept
    : connection_(connection),
      input_(input),
      output_(output),
      over_(head.framing == Framing::none ||
            (head.framing == Framing::length && head.content_length == 0)),
      must_ask_(head.expects_continue && !over_ && input.rest().empty()),
      left_(head.framing == Framing::length ? head.content_length
                                            : connection.server().limits().body_bytes),
      allowance_(connection.server().limits().body, connection.server().limits().least_rate) {
  if (head.framing == Framing::chunked) {
    const Limits& limits = connection.server().limits();
    decoder_.emplace(limits.head_bytes, limits.headers);
  }
}

net::Result<std::size_t> BodyReader::read_some(std::span<std::byte> buffer) {
  if (error_) return {.error = error_};
  if (over_) return {.error = weft::Errc::end_of_stream};
  if (buffer.empty()) return {};
  return decoder_ ? read_chunked(buffer) : read_plain(buffer);
}

std::error_code BodyReader::fail(std::error_code error) noexcept {
  error_ = error;
  return error;
}

net::Result<std::size_t> BodyReader::receive(std::span<char> room) {
  if (must_ask_ && may_ask_) {
    must_ask_ = false;
    output_.append("HTTP/1.1 100 Continue\r\n\r\n");
  }
  if (const auto error = output_.flush()) return {.error = fail(error)};
  auto result = connection_.read(room, Deadline::past());
  if (result.error == weft::Errc::timed_out) {
    result =
        allowance_.wait([&](const Deadline deadline) { return connection_.read(room, deadline); });
  } else {
    allowance_.earn(result.value);
  }
  if (result.error == weft::Errc::end_of_stream) return {.error = fail(Errc::unexpected_end)};
  if (result.error) return {.error = fail(result.error)};
  return result;
}

net::Result<std::size_t> BodyReader::read_plain(std::span<std::byte> buffer) {
  buffer = buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), left_)));
  std::size_t count = std::min(buffer.size(), input_.rest().size());
  if (count > 0) {
    (void)input_.rest().copy(reinterpret_cast<char*>(buffer.data()), count);
    input_.consume(count);
  } else {
    auto result = receive({reinterpret_cast<char*>(buffer.data()), buffer.size()});
    if (result.error) return result;
    count = result.value;
  }
  left_ -= count;
  over_ = left_ == 0;
  return {.value = count};
}

net::Result<std::size_t> BodyReader::read_chunked(std::span<std::byte> buffer) {
  for (;;) {
    const bool from_input = !input_.rest().empty();
    const std::string_view encoded =
        from_input ? input_.rest()
                   : std::string_view(raw_.get() + raw_begin_, raw_end_ - raw_begin_);
    const ChunkDecoder::Step step = decoder_->next(encoded, buffer.size());
    if (from_input) {
      input_.consume(step.consumed);
    } else {
      raw_begin_ += step.consumed;
    }
    switch (step.state) {
      case ChunkDecoder::State::data:
        if (step.data.size() > left_) return {.error = fail(Errc::body_too_large)};
        left_ -= step.data.size();
        (void)step.data.copy(reinterpret_cast<char*>(buffer.data()), step.data.size());
        return {.value = step.data.size()};
      case ChunkDecoder::State::end:
        over_ = true;
        return {.error = weft::Errc::end_of_stream};
      case ChunkDecoder::State::refused:
        return {.error = fail(step.error)};
      case ChunkDecoder::State::wants_more:
        break;
    }
    if (!input_.rest().empty()) continue;
    if (raw_ == nullptr) raw_ = std::make_unique_for_overwrite<char[]>(kRawSize);
    raw_begin_ = raw_end_ = 0;
    const auto received = receive({raw_.get(), kRawSize});
    if (received.error) return received;
    raw_end_ = received.value;
  }
}

bool BodyReader::may_be_discarded() const noexcept {
  if (over_) return true;
  // A body that was not asked for may come nevertheless, and would be taken for a request.
  return !error_ && !must_ask_ && (decoder_ || left_ <= kMostDiscarded);
}

bool BodyReader::discard() {
  if (!may_be_discarded()) return false;
  if (over_) return true;
  std::array<std::byte, 2048> dropped;
  for (std::uint64_t total = 0; total <= kMostDiscarded;) {
    const auto [count, error] = read_some(dropped);
    if (error || over_) return over_;
    total += count;
  }
  return false;
}

void BodyReader::give_back() {
  if (raw_ != nullptr && raw_begin_ < raw_end_) {
    input_.keep({raw_.get() + raw_begin_, raw_end_ - raw_begin_});
  }
}

}  // namespace weft::http
