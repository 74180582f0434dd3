// Reads forms: URL-encoded fields, and multipart forms with files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/files.hpp>
#include <weft/http/request.hpp>
#include <weft/net/result.hpp>

namespace weft::http {

// Holds a decoded field of a form.
struct FormField {
  std::string name;
  std::string value;
};

// If a form exceeds a limit, the error is Errc::form_too_large. The server's Limits::body_bytes
// also limits the size of the request's body.
struct FormLimits {
  std::size_t bytes = 1024 * 1024;
  std::size_t fields = 1000;
};

// Parses a string such as "a=1&b=x+y%21". Incorrectly encoded characters stay unchanged.
// Context: plain value.
// Errors: Errc::form_too_large.
// Throws: std::bad_alloc.
[[nodiscard]] net::Result<std::vector<FormField>> parse_form(std::string_view text,
                                                             const FormLimits& limits = {});
// Reads the body of a request with Content-Type: application/x-www-form-urlencoded.
// Context: the request's handler; parks.
// Errors: Errc::unsupported_form for other types; form_too_large; errors of Request::read_some().
// Throws: std::bad_alloc; whatever Request::read_some() throws.
[[nodiscard]] net::Result<std::vector<FormField>> read_form(Request& request,
                                                            const FormLimits& limits = {});

// If a form exceeds a limit, the error is Errc::form_too_large. The server's Limits::body_bytes
// also limits the size of the request's body.
struct MultipartLimits {
  std::size_t parts = 1000;
  std::size_t header_bytes = 8 * 1024;  // The total size of the headers of one part.
  std::uint64_t part_bytes = ~std::uint64_t{0};
  std::uint64_t total_bytes = ~std::uint64_t{0};  // The whole form, with boundaries and headers.
};

// Reads multipart/form-data part by part, with a buffer of at most about 8 KiB + header_bytes:
//
//   Multipart form(request);
//   while (form.next()) {
//     if (form.filename()) {
//       if (const auto saved = form.save_to("/srv/upload"); saved.error) break;
//     } else {
//       fields[form.name()] = form.read_all(4096).value;
//     }
//   }
//   if (form.next() != weft::Errc::end_of_stream) response.set_status(400);
//
// After an error, next() and read_some() return the same error.
// Context: one fiber at a time; calls that return a net::Result park.
// Throws: std::bad_alloc; reads also throw whatever the source or Request::read_some() throws.
class Multipart {
 public:
  // Returns the next bytes of a body, or weft::Errc::end_of_stream.
  using Source = std::function<net::Result<std::size_t>(std::span<std::byte>)>;

  // Reads the body of a request, which must outlive this object.
  explicit Multipart(Request& request, const MultipartLimits& limits = {});
  // Reads a body of this Content-Type from `source`.
  Multipart(std::string_view content_type, Source source, const MultipartLimits& limits = {});
  // Leaves the remaining body unread.
  ~Multipart();
  Multipart(const Multipart&) = delete;
  Multipart& operator=(const Multipart&) = delete;

  // Skips the rest of the current part, and moves to the next part.
  // Errors: weft::Errc::end_of_stream at the end of the body; Errc::unsupported_form if the
  // Content-Type is wrong or has no boundary; malformed_form; form_too_large; errors of the source.
  [[nodiscard]] net::Result<void> next();
  // Returns the field's name, as the client sent it.
  [[nodiscard]] const std::string& name() const noexcept;
  // Returns the file's name, if any, as the client sent it; do not use this name as a path.
  [[nodiscard]] const std::optional<std::string>& filename() const noexcept;
  // Returns the Content-Type, or "text/plain" if the part has none.
  [[nodiscard]] std::string_view content_type() const noexcept;

  // Reads at least one byte of the part. weft::Errc::end_of_stream reports the end of the part.
  // Errors: also the errors of next().
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  // Reads the rest of the part. After an error, `value` is the text read so far.
  // Errors: also Errc::form_too_large if more than `most` bytes remain.
  net::Result<std::string> read_all(std::size_t most = 64 * 1024);
  // Writes the rest of the part to the file from offset 0, and returns the number of bytes written.
  // Workers do not wait for the disk.
  // Errors: also the errors of files::File::write_all().
  net::Result<std::uint64_t> save(files::File& file);
  // Works like save(), but creates the file `path`. After an error, an incomplete file may remain.
  // Errors: also the errors of files::File::open(), such as file_exists if the file exists.
  net::Result<std::uint64_t> save_to(const std::string& path);

 private:
  class Reader;
  const std::unique_ptr<Reader> reader_;
};

}  // namespace weft::http
