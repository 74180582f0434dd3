// Implements the response to a request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <weft/http/response.hpp>

#include "libs/http/coding/gzip.hpp"
#include "libs/http/server/body_reader.hpp"
#include "libs/http/server/output.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

class ServerConnection;

// Implements a Response. The handler's fiber uses the Answer first, and the connection's fiber
// afterwards.
class Answer {
 public:
  // `head` and `body` belong to the request.
  Answer(ServerConnection& connection, Output& output, const Head& head, BodyReader& body) noexcept
      : connection_(connection), output_(output), head_(head), body_(body) {}

  // See Response.
  void set_status(int status) noexcept;
  [[nodiscard]] int status() const noexcept { return status_.code; }
  enum class Earlier : std::uint8_t { kept, replaced };
  void add_header(std::string_view name, std::string_view value, Earlier earlier);
  void remove_header(std::string_view name) noexcept;
  void close_after() noexcept { close_ = true; }
  std::error_code send(std::string_view body);
  std::error_code write(std::string_view part);
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] bool started() const noexcept { return stage_ != Stage::not_started; }
  std::error_code upgrade(std::string_view protocol, Talk talk);

  // Sends a response with this status instead of the prepared one. Does nothing if a response has
  // already begun. Allocates nothing.
  void send_error(int status, std::string_view more_headers = {});
  // Marks the response as incomplete, so that the client cannot mistake the sent part for the whole
  // response.
  void break_off() noexcept { broken_off_ = close_ = true; }
  [[nodiscard]] bool is_broken_off() const noexcept { return broken_off_; }
  // Sends 503 if the handler has set no status and begun no response, because an empty response
  // would look like success. The caller must ensure that the handler's context has ended.
  void give_up();
  // Completes the response. Returns true if the connection may stay open.
  [[nodiscard]] bool finish();
  // Returns true for an aborted response whose body ends when the connection closes. Only a reset
  // shows the client that such a response is incomplete.
  [[nodiscard]] bool must_reset() const noexcept { return must_reset_; }
  // Returns the callable that upgrade() has stored, or an empty one. finish() empties it if the
  // output cannot be sent.
  [[nodiscard]] Talk& talk() noexcept { return upgrade_.talk; }
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept {
    return coding_.is_on ? coding_.size : written_;
  }

 private:
  enum class Stage : std::uint8_t { not_started, chunks, promised, until_close, complete };

  // Returns true for a response to HEAD, and for 204, 205 and 304, even if the handler sets a body.
  [[nodiscard]] bool has_no_body() const noexcept {
    return head_.method == "HEAD" || status_.code == 204 || status_.code == 205 ||
           status_.code == 304;
  }
  [[nodiscard]] bool will_stay() const noexcept;
  [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
  [[nodiscard]] bool forbids_transform() const noexcept;
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
  void end_stream();
  std::error_code copy_file(int descriptor, std::uint64_t offset, std::uint64_t size);

  ServerConnection& connection_;
  Output& output_;
  const Head& head_;
  BodyReader& body_;
  struct {
    int code = 200;
    bool is_set = false;  // True if the handler has set the status.
  } status_;
  Stage stage_ = Stage::not_started;
  bool close_ = false;
  bool broken_off_ = false;
  bool must_reset_ = false;
  bool keeps_ = false;                    // True if the response's head has announced keep-alive.
  std::optional<std::uint64_t> promise_;  // The Content-Length that the handler has set.
  std::uint64_t written_ = 0;
  std::string fields_;  // Header lines.
  struct {
    bool is_on = false;
    std::uint64_t size = 0;
    std::unique_ptr<Gzip> gzip;  // Used for bodies that are written in parts.
  } coding_;
  struct {
    Talk talk;
    bool talk_answers = false;
  } upgrade_;
};

}  // namespace weft::http
