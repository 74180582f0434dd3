#include "libs/http/server/body_reader.hpp"

#include <algorithm>
#include <array>
#include <weft/error.hpp>

#include "libs/http/server/output.hpp"
#include "libs/http/server/transport.hpp"

namespace weft::http {

BodyReader::BodyReader(Transport& transport, Input& input, Output& output, const Head& head,
                       const Limits& limits) noexcept
    : transport_(transport),
      input_(input),
      output_(output),
      limits_(limits),
      body_(head, limits.body_bytes),
      must_ask_(head.expects_continue && !body_.over() && input.rest().empty()),
      most_(limits.body_bytes),
      allowance_(limits.body, limits.least_rate) {
  if (head.framing == Framing::chunked) body_.decode_by({limits.head_bytes, limits.headers});
}

void BodyReader::set_limits(const RequestLimits& limits) noexcept {
  most_ = std::min(limits.body_bytes.value_or(limits_.body_bytes), limits_.body_bytes);
  body_.bound_chunks(most_);
  allowance_ = {limits.body.value_or(limits_.body), limits_.least_rate};
  output_.allowance() = {limits.write.value_or(limits_.write), limits_.least_rate};
}

net::Result<std::size_t> BodyReader::read_some(std::span<std::byte> buffer) {
  if (error_) return {.error = error_};
  if (!body_.over() && !body_.is_chunked() && body_.left() > most_) {
    error_ = Errc::body_too_large;
    return {.error = error_};
  }
  const auto result = body_.read_some(buffer, *this);
  if (result.error && !body_.over()) error_ = result.error;
  return result;
}

// Reads from the connection, and waits for bytes if necessary.
net::Result<std::size_t> BodyReader::receive(std::span<std::byte> room) {
  if (must_ask_ && may_ask_) {
    must_ask_ = false;
    output_.append("HTTP/1.1 100 Continue\r\n\r\n");
  }
  if (const auto error = output_.flush()) return {.error = error};
  auto result = transport_.read(room, Deadline::past());
  if (result.error == weft::Errc::timed_out) {
    result =
        allowance_.wait([&](const Deadline deadline) { return transport_.read(room, deadline); });
  } else {
    allowance_.earn(result.value);
  }
  return result;
}

std::error_code BodyReader::receive_more() {
  if (raw_ == nullptr) raw_ = std::make_unique_for_overwrite<char[]>(kRawSize);
  raw_begin_ = raw_end_ = 0;
  const auto received = receive(std::as_writable_bytes(std::span(raw_.get(), kRawSize)));
  if (!received.error) raw_end_ = received.value;
  return received.error;
}

bool BodyReader::may_be_discarded() const noexcept {
  if (body_.over()) return true;
  // A client that has received no status 100 may or may not send the body. The server could mistake
  // this body for the next request.
  return !error_ && !must_ask_ &&
         (body_.is_chunked() || body_.left() <= std::min(kMostDiscarded, most_));
}

bool BodyReader::discard() {
  if (!may_be_discarded()) return false;
  if (body_.over()) return true;
  std::array<std::byte, 2048> dropped;
  for (std::uint64_t total = 0; total <= kMostDiscarded;) {
    const auto [count, error] = read_some(dropped);
    if (error || body_.over()) return body_.over();
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
