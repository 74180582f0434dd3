// One request and its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/deadline.hpp>
#include <weft/http/request.hpp>
#include <weft/http/response.hpp>

#include "libs/http/coding/gzip.hpp"
#include "libs/http/server/body_reader.hpp"
#include "libs/http/server/hang_up.hpp"
#include "libs/http/server/output.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

class Connection;
class Input;

// The inside of a Request and a Response. The handler's fiber uses it, then the connection's.
class Exchange {
 public:
  Exchange(Connection& connection, Input& input, Output& output, const Head& head) noexcept;

  // The request.
  [[nodiscard]] const Head& head() const noexcept { return head_; }
  [[nodiscard]] BodyReader& body() noexcept { return body_; }
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  [[nodiscard]] Context& context();
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  [[nodiscard]] const auto& parameters() const noexcept { return parameters_; }
  void add_parameter(std::string_view name, std::string_view value) {
    parameters_.emplace_back(name, value);
  }

  // The answer; see Response.
  void set_status(int status) noexcept;
  [[nodiscard]] int status() const noexcept { return status_; }
  enum class Earlier : std::uint8_t { kept, replaced };
  void add_header(std::string_view name, std::string_view value, Earlier earlier);
  void remove_header(std::string_view name) noexcept;
  void close_after() noexcept { close_ = true; }
  std::error_code send(std::string_view body);
  std::error_code write(std::string_view part);
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] bool started() const noexcept { return stage_ != Stage::not_started; }
  std::error_code upgrade(std::string_view protocol, Talk talk);

  // Sends it instead of what was prepared. Nothing if the answer has begun. Allocates nothing.
  void send_error(int status, std::string_view more_headers = {});
  // The answer ends early: the client must not take the part for the whole.
  void break_off() noexcept { broken_off_ = close_ = true; }
  // When the handler has returned: completes the answer. True if the connection stays. The head's
  // texts are valid until body().give_back(), which is to follow then.
  [[nodiscard]] bool finish();
  // An answer that ends with its connection has been broken off: only a reset can tell.
  [[nodiscard]] bool must_reset() const noexcept { return must_reset_; }
  // Limits::request has passed.
  [[nodiscard]] bool is_late() const noexcept { return limit_.passed(); }
  // The client has said that it sends nothing more, and all that it sent has been read: then a
  // close takes no answer back.
  [[nodiscard]] bool was_the_last() const noexcept;
  // Not empty once finish() has sent the answer to an upgrade, or left it to the talk.
  [[nodiscard]] Talk& talk() noexcept { return talk_; }
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept {
    return is_coded_ ? coded_size_ : written_;
  }

 private:
  enum class Stage : std::uint8_t { not_started, chunks, promised, until_close, complete };

  // True for a HEAD's answer, 204, 205 and 304, whatever the handler says.
  [[nodiscard]] bool has_no_body() const noexcept {
    return head_.method == "HEAD" || status_ == 204 || status_ == 205 || status_ == 304;
  }
  [[nodiscard]] bool will_stay() const noexcept;
  [[nodiscard]] bool was_given_up() const noexcept;
  [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
  [[nodiscard]] bool wants_code(std::optional<std::uint64_t> size);
  void announce_code();
  [[nodiscard]] std::string_view code_all(std::string_view body, std::string& coded);
  std::error_code write_coded(std::string_view part, Gzip::Then then);
  std::error_code send_rest(std::string_view body);
  void append_part(std::string_view part) {
    if (stage_ == Stage::chunks) return output_.append_chunk(part);
    output_.append(part);
  }
  void append_status_line();
  void append_fields();
  void append_connection_header();
  void begin_stream();
  void watch_for_hang_up();
  void end_stream();
  std::error_code copy_file(int descriptor, std::uint64_t offset, std::uint64_t size);

  Connection& connection_;
  Input& input_;
  Output& output_;
  const Head& head_;
  BodyReader body_;
  const Deadline limit_;  // The context's.
  std::vector<std::pair<std::string_view, std::string_view>> parameters_;
  std::optional<Context> context_;
  std::optional<HangUpWatch> hang_up_;

  int status_ = 200;
  bool status_is_set_ = false;  // The handler has set it.
  Stage stage_ = Stage::not_started;
  bool close_ = false;
  bool broken_off_ = false;
  bool must_reset_ = false;
  bool keeps_ = false;                    // The head of the answer has said so.
  std::optional<std::uint64_t> promise_;  // Content-Length as the handler set it.
  std::uint64_t written_ = 0;
  std::string fields_;  // Header lines.
  bool is_coded_ = false;
  std::uint64_t coded_size_ = 0;
  std::unique_ptr<Gzip> gzip_;  // For a body that is written in parts and coded.
  Talk talk_;
  bool talk_answers_ = false;
};

}  // namespace weft::http
