#include "libs/tls/wire.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <weft/detail/first_use.hpp>
#include <weft/tls/error.hpp>

namespace weft::tls {

namespace {

Wire& wire_of(BIO* bio) noexcept { return *static_cast<Wire*>(BIO_get_data(bio)); }

int put(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  BIO_clear_retry_flags(bio);
  Wire& wire = wire_of(bio);
  if (wire.out_lost) return 0;
  try {
    wire.out.append(data, size);
  } catch (const std::bad_alloc&) {  // OpenSSL cannot handle exceptions.
    wire.out_lost = true;
    return 0;
  }
  *written = size;
  return 1;
}

int take(BIO* bio, char* data, std::size_t size, std::size_t* read) {
  Wire& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  *read = std::min(size, wire.unread());
  if (*read == 0) {
    if (!wire.in_ended) BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(data, wire.in.data() + wire.in_begin, *read);
  wire.in_begin += *read;
  return 1;
}

long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return wire_of(bio).in_ended ? 1 : 0;
    default:
      return 0;
  }
}

// The functions of all BIOs on wires. Throws std::bad_alloc.
class Method {
 public:
  Method() : method_(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft")) {
    if (method_ == nullptr) throw std::bad_alloc();
    BIO_meth_set_write_ex(method_, put);
    BIO_meth_set_read_ex(method_, take);
    BIO_meth_set_ctrl(method_, control);
  }
  ~Method() { BIO_meth_free(method_); }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  [[nodiscard]] const BIO_METHOD* get() const noexcept { return method_; }

 private:
  BIO_METHOD* method_;
};

constinit detail::FirstUse<Method> method;

}  // namespace

void Wire::drop_read() noexcept {
  in.erase(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(in_begin));
  in_begin = 0;
  if (in.empty()) release_if_large(in);
}

BIO* make_bio(Wire& wire) {
  BIO* const bio = BIO_new(method.get([] { return std::make_unique<Method>(); }).get());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &wire);
  BIO_set_init(bio, 1);
  return bio;
}

std::error_code take_error() noexcept {
  const unsigned long first = ERR_get_error();
  bool lacks_memory = false;
  for (unsigned long code = first; code != 0; code = ERR_get_error()) {
    lacks_memory = lacks_memory || ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
  }
  if (lacks_memory) return std::make_error_code(std::errc::not_enough_memory);
  if (first == 0) return std::make_error_code(std::errc::protocol_error);
  // OpenSSL has no text for an error of the system, such as that of a file that does not exist.
  if (ERR_SYSTEM_ERROR(first)) return {ERR_GET_REASON(first), std::system_category()};
  return {static_cast<int>(first), openssl_category()};
}

std::error_code take_error(const SSL& ssl) noexcept {
  // The last entry is the handshake's own; a bad signature, for example, leaves other entries
  // before it.
  const bool refused = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  const std::error_code error = take_error();
  const long verdict = SSL_get_verify_result(&ssl);
  if (!refused || verdict == X509_V_OK || error == std::errc::not_enough_memory) return error;
  return {static_cast<int>(verdict), verification_category()};
}

}  // namespace weft::tls
