#include "libs/http/server/answer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "libs/http/server/server_connection.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/printable.hpp"

namespace weft::http {

namespace {

bool is_value(std::string_view value) noexcept {
  return std::all_of(value.begin(), value.end(), is_value_char);
}

bool is_ours(std::string_view name) noexcept {
  return equal_tokens(name, "transfer-encoding") || equal_tokens(name, "connection") ||
         equal_tokens(name, "date");
}

}  // namespace

void Answer::set_status(int status) noexcept {
  if (started() || status < 200 || status > 599) return;
  status_.code = status;
  status_.is_set = true;
}

void Answer::add_header(std::string_view name, std::string_view value, Earlier earlier) {
  if (!is_token(name) || !is_value(value) || is_ours(name)) {
    throw std::invalid_argument("weft::http::Response::add_header: '" + printable(name) +
                                "' must be a token with a value on one line, and none of the "
                                "headers that the server writes itself");
  }
  if (started()) return;
  if (equal_tokens(name, "content-length")) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc() || end != value.data() + value.size()) {
      throw std::invalid_argument("weft::http::Response::add_header: Content-Length = '" +
                                  printable(value) + "'; must be a number of bytes");
    }
    promise_ = length;
    return;  // The server writes this header with the head.
  }
  if (fields_.capacity() < 64) fields_.reserve(256);
  if (earlier == Earlier::replaced) {
    // Reserves memory first, so that no header is lost if memory runs out.
    fields_.reserve(fields_.size() + name.size() + value.size() + 4);
    remove_header(name);
  }
  fields_.append(name).append(": ").append(value).append("\r\n");
}

void Answer::remove_header(std::string_view name) noexcept {
  if (equal_tokens(name, "content-length")) promise_.reset();
  for (std::size_t at = 0; at < fields_.size();) {
    const std::size_t size = fields_.find("\r\n", at) + 2 - at;
    const std::string_view line(fields_.data() + at, size);
    if (equal_tokens(line.substr(0, line.find(':')), name)) {
      fields_.erase(at, size);
    } else {
      at += size;
    }
  }
}

bool Answer::will_stay() const noexcept {
  return head_.keep_alive && !close_ && body_.may_be_discarded() &&
         !connection_.server().stopping();
}

void Answer::append_status_line() {
  if (status_.code == 200) {
    output_.append("HTTP/1.1 200 OK\r\n");
  } else {
    output_.append("HTTP/1.1 ");
    output_.append_number(static_cast<std::size_t>(status_.code));
    output_.append(" ");
    output_.append(reason_phrase(status_.code));
    output_.append("\r\n");
  }
  output_.append_date();
}

// Appends the status line, the date and the handler's headers.
void Answer::append_fields() {
  // The client already has the body that Content-Type would describe (RFC 9110, 15.4.5).
  if (status_.code == 304) remove_header("content-type");
  append_status_line();
  output_.append(fields_);
}

void Answer::append_connection_header() {
  keeps_ = will_stay() && stage_ != Stage::until_close;
  if (!keeps_) {
    output_.append("Connection: close\r\n");
  } else if (head_.minor_version == 0) {
    output_.append("Connection: keep-alive\r\n");
  }
}

std::error_code Answer::send(std::string_view body) {
  if (started() || upgrade_.talk) return Errc::already_started;
  if (promise_ && *promise_ != body.size() && !has_no_body()) return Errc::wrong_length;
  if (status_.code == 205) promise_ = 0;  // For 205, the client expects "Content-Length: 0".
  stage_ = Stage::complete;
  body_.note_answer();
  std::string coded;
  if (connection_.server().options().compression && wants_code(promise_.value_or(body.size()))) {
    body = code_all(body, coded);
  }
  append_fields();
  return send_rest(body);
}

// Sends the body, and the part of the head that describes the body.
std::error_code Answer::send_rest(std::string_view body) {
  // A body that is not sent is not compressed either, so its compressed size is unknown.
  if (status_.code != 204 && !(coding_.is_on && has_no_body())) {
    const bool promised = promise_ && has_no_body();
    if (status_.code != 304 || promised) {
      output_.append("Content-Length: ");
      output_.append_number(promised ? *promise_ : body.size());
      output_.append("\r\n");
    }
  }
  append_connection_header();
  output_.append("\r\n");
  if (!has_no_body()) {
    output_.append(body);
    written_ = coding_.size = body.size();
  }
  return output_.flush();
}

// Begins a response that is written in parts.
void Answer::begin_stream() {
  if (status_.code == 205) promise_ = 0;
  body_.note_answer();
  if (connection_.server().options().compression && wants_code(promise_)) {
    if (!has_no_body())
      coding_.gzip = Gzip::make(connection_.server().options().compression->level);
    if (coding_.gzip != nullptr || has_no_body()) announce_code();
  }
  if ((promise_ && !coding_.is_on) || has_no_body()) {
    stage_ = Stage::promised;
  } else {
    stage_ = head_.minor_version == 0 ? Stage::until_close : Stage::chunks;
  }
  append_fields();
  if (promise_ && !coding_.is_on && status_.code != 204) {
    output_.append("Content-Length: ");
    output_.append_number(*promise_);
    output_.append("\r\n");
  }
  if (stage_ == Stage::chunks) output_.append("Transfer-Encoding: chunked\r\n");
  append_connection_header();
  output_.append("\r\n");
}

std::error_code Answer::write(std::string_view part) {
  if (stage_ == Stage::complete || upgrade_.talk) return Errc::already_started;
  if (!started()) begin_stream();
  if (part.empty()) return output_.flush();
  if (has_no_body()) return output_.flush();
  if (promise_ && part.size() > *promise_ - written_) return Errc::wrong_length;
  written_ += part.size();
  if (coding_.gzip != nullptr) return write_coded(part, Gzip::Then::flush);
  append_part(part);
  return output_.flush();
}

void Answer::end_stream() {
  const bool is_stream = stage_ != Stage::complete && !has_no_body();
  if (is_stream && (broken_off_ || output_.error())) {
    must_reset_ = stage_ == Stage::until_close;
  } else if (is_stream && promise_ && written_ != *promise_) {
    // The client is still waiting for the missing bytes, so the connection must end.
    close_ = true;
  } else if (is_stream) {
    if (coding_.gzip != nullptr) (void)write_coded({}, Gzip::Then::end);
    if (stage_ == Stage::chunks) output_.append("0\r\n\r\n");
  }
  stage_ = Stage::complete;
}

// Allocates nothing, because memory may have run out.
void Answer::send_error(int status, std::string_view more_headers) {
  if (started()) return;
  status_.code = status;
  promise_.reset();
  upgrade_.talk = nullptr;
  stage_ = Stage::complete;
  body_.note_answer();
  append_status_line();
  output_.append("Content-Type: text/plain\r\n");
  output_.append(more_headers);
  std::array<char, 64> text;
  const std::string_view reason = reason_phrase(status);
  const std::size_t size = reason.copy(text.data(), text.size() - 1);
  text.at(size) = '\n';
  (void)send_rest({text.data(), size + 1});
}

std::error_code Answer::upgrade(std::string_view protocol, Talk talk) {
  if (started() || upgrade_.talk) return Errc::already_started;
  if (!head_.asks_for_upgrade || !body_.over() || !is_value(protocol) || !talk) {
    return Errc::unsupported;
  }
  fields_.append("Upgrade: ").append(protocol).append("\r\n");
  upgrade_.talk_answers = protocol.empty();
  upgrade_.talk = std::move(talk);
  return {};
}

void Answer::give_up() {
  if (!started() && !upgrade_.talk && !status_.is_set) send_error(503);
}

bool Answer::finish() {
  if (upgrade_.talk) {
    status_.code = 101;
    stage_ = Stage::complete;
    if (!upgrade_.talk_answers) {
      append_status_line();
      output_.append(fields_);
      output_.append("Connection: Upgrade\r\n\r\n");
    }
    if (output_.flush()) upgrade_.talk = nullptr;
    return false;
  }
  if (!started()) (void)send({});
  if (!started()) send_error(500);  // The handler promised a body, but did not write it.
  end_stream();
  return !output_.flush() && keeps_ && !close_;
}

}  // namespace weft::http
