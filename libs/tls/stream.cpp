#include <weft/tls/stream.hpp>

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <weft/context.hpp>
#include <weft/detail/guard.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/tls/error.hpp>

#include "libs/tls/peer.hpp"
#include "libs/tls/server_name.hpp"
#include "libs/tls/stream_state.hpp"

namespace weft::tls {

namespace {

bool is_early_end(std::error_code error) noexcept {
  return error == weft::Errc::timed_out || error == weft::Errc::cancelled;
}

}  // namespace

StreamState::StreamState(net::TcpStream&& stream, std::shared_ptr<ContextState> context,
                         std::string name)
    : own_(std::move(stream)),
      stream_(own_),
      context_(std::move(context)),
      server_name_(without_final_dot(std::move(name))) {}

StreamState::StreamState(net::TcpStream& stream, std::shared_ptr<ContextState> context,
                         std::string name)
    : stream_(stream),
      context_(std::move(context)),
      server_name_(without_final_dot(std::move(name))) {}

// OpenSSL invalidates a session whose connection ended without close_notify. TLS has not required
// this since version 1.1, and many peers close without close_notify.
StreamState::~StreamState() {
  sender_stop_.request_stop();
  sender_ = {};  // Joins it.
  if (ssl_ != nullptr) SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

std::error_code StreamState::prepare() {
  ERR_clear_error();
  ssl_ = context_->make_ssl();
  BIO* const bio = ssl_ == nullptr ? nullptr : make_bio(wire_);
  if (bio == nullptr) return std::make_error_code(std::errc::not_enough_memory);
  SSL_set_bio(ssl_.get(), bio, bio);
  // Index 0 is the "app data".
  if (SSL_set_ex_data(ssl_.get(), 0, this) != 1) return take_error();
  if (context_->is_server()) {
    SSL_set_accept_state(ssl_.get());
    return {};
  }
  SSL_set_connect_state(ssl_.get());
  if (const auto error = expect_server(*ssl_, server_name_)) return error;
  if (const SessionPtr session = context_->take_session(server_name_)) {
    (void)SSL_set_session(ssl_.get(), session.get());
  }
  return {};
}

// Calls OpenSSL once. The call does not switch fibers, so it has the thread's error queue to
// itself.
template <class Call>
StreamState::Needs StreamState::attempt(Call call, std::error_code& error) {
  const detail::Guard guard(ssl_mutex_);
  // Clearing visits every entry of the queue, even when it is empty.
  if (ERR_peek_error() != 0) ERR_clear_error();
  const int outcome = call();
  if (outcome > 0) {
    if (wire_.unread() == 0) wire_.drop_read();
    return Needs::nothing;
  }
  switch (SSL_get_error(ssl_.get(), outcome)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Needs::bytes;
    case SSL_ERROR_ZERO_RETURN:
      return Needs::end;
    default:
      error = take_error(*ssl_);
      if (wire_.out_lost) error = std::make_error_code(std::errc::not_enough_memory);
      // The stream itself has seen the connection end, so it reports the truncation.
      if (error != std::errc::not_enough_memory && wire_.in_ended && wire_.unread() == 0) {
        error = Errc::truncated;
      }
      failed_ = true;
      return Needs::failure;
  }
}

bool StreamState::has_unsent() const noexcept {
  const detail::Guard guard(ssl_mutex_);
  return !wire_.out.empty() || !sending_.empty();
}

// Writes the bytes that OpenSSL has put on the wire. If the wait ends early, the sender fiber
// writes the rest.
std::error_code StreamState::flush(const Until& until) {
  // The loop checks again after each round, because a caller that finds the mutex locked relies on
  // its owner.
  while (has_unsent()) {
    if (!write_mutex_.try_lock_until(until)) return until.reason();
    const std::lock_guard writing(write_mutex_, std::adopt_lock);
    const std::error_code error = send_unsent(until);
    if (is_early_end(error)) start_sender();
    if (error) return error;
  }
  return {};
}

// The caller holds write_mutex_. Each time it locks ssl_mutex_, it removes the bytes that were sent
// and takes the next bytes.
std::error_code StreamState::send_unsent(const Until& until) {
  for (net::Result<std::size_t> sent;;) {
    {
      const detail::Guard guard(ssl_mutex_);
      sending_.erase(0, sent.value);
      if (sent.error) return sent.error;
      if (sending_.empty())
        sending_.swap(wire_.out);  // Both buffers keep their memory for the next record.
      if (sending_.empty()) {
        release_if_large(sending_);
        release_if_large(wire_.out);
        return {};
      }
    }
    sent = stream_.write_all(std::as_bytes(std::span(sending_)), until);
  }
}

// The caller holds write_mutex_, which the sender locks first.
void StreamState::start_sender() {
  {
    const detail::Guard guard(ssl_mutex_);
    if (sender_runs_) return;
  }
  try {
    sender_stop_ = std::stop_source();
    // The former sender is about to end and needs no mutex any more. The sender outlasts the
    // caller's scope.
    const this_fiber::NoCancel without_context;
    sender_ = weft::spawn({.name = "tls sender"},
                          [this, stop = sender_stop_.get_token()] { run_sender(stop); });
  } catch (const std::exception&) {
    return;  // If memory is short, or there are too many fibers, the next call sends the rest.
  }
  const detail::Guard guard(ssl_mutex_);
  sender_runs_ = true;
}

// A caller that leaves bytes unsent while the sender runs relies on the sender.
void StreamState::run_sender(const std::stop_token& stop) {
  for (;;) {
    std::error_code error;
    {
      const std::lock_guard writing(write_mutex_);
      error = send_unsent(stop);
    }
    const detail::Guard guard(ssl_mutex_);
    if (!error && !(wire_.out.empty() && sending_.empty())) continue;
    sender_runs_ = false;
    return;
  }
}

// The caller that reads the stream calls it.
std::error_code StreamState::receive(const Until& until) {
  std::array<char, 16 * 1024> bytes;
  const auto [count, error] = stream_.read_some(std::as_writable_bytes(std::span(bytes)), until);
  const detail::Guard guard(ssl_mutex_);
  if (error == weft::Errc::end_of_stream) {
    wire_.in_ended = true;
    return {};
  }
  if (error) return error;
  wire_.drop_read();
  try {
    wire_.in.insert(wire_.in.end(), bytes.data(), bytes.data() + count);
  } catch (const std::bad_alloc&) {
    wire_.in_ended = true;  // Bytes that arrive later would follow a gap.
    return std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

std::error_code StreamState::handshake(const Until& until) {
  for (;;) {
    std::error_code failure;
    const Needs needs = attempt([&] { return SSL_do_handshake(ssl_.get()); }, failure);
    // The peer also receives an alert with the reason.
    const std::error_code error = flush(until);
    if (needs == Needs::failure) return failure;
    if (error) return error;
    if (needs == Needs::nothing) return {};
    if (needs == Needs::end) return Errc::truncated;
    if (const auto ended = receive(until)) return ended;
  }
}

net::Result<std::size_t> StreamState::read_some(std::span<std::byte> buffer, const Until& until) {
  if (buffer.empty()) return {};
  for (bool must_receive = knows_of_nothing();; must_receive = false) {
    if (!must_receive) {
      std::error_code failure;
      std::size_t count = 0;
      const Needs needs = attempt(
          [&] { return SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &count); }, failure);
      if (needs == Needs::nothing) return {.value = count};
      if (needs == Needs::end) return {.error = weft::Errc::end_of_stream};
      if (needs == Needs::failure) return {.error = failure};
      // A reader does not wait for the write: the peer may have to be read first.
      const std::error_code unsent = flush(Deadline::past());
      if (unsent && !is_early_end(unsent)) return {.error = unsent};
    }
    if (const auto error = receive(until)) return {.error = error};
  }
}

bool StreamState::has_read_ahead() const noexcept {
  const detail::Guard guard(ssl_mutex_);
  return wire_.unread() > 0 || SSL_pending(ssl_.get()) > 0;
}

// Returns true if OpenSSL would only report that it needs bytes, which takes about as long as
// decrypting some, and if no bytes wait to be sent.
bool StreamState::knows_of_nothing() const noexcept {
  const detail::Guard guard(ssl_mutex_);
  return !failed_ && !wire_.in_ended && wire_.unread() == 0 && wire_.out.empty() &&
         sending_.empty() && SSL_has_pending(ssl_.get()) == 0 && SSL_get_shutdown(ssl_.get()) == 0;
}

net::Result<std::size_t> StreamState::write_some(std::span<const std::byte> data,
                                                 const Until& until) {
  // Bytes left by an earlier call are written first; then this call encrypts only the bytes that it
  // reports as written.
  if (const auto error = flush(until)) return {.error = error};
  if (data.empty()) return {};
  std::error_code failure;
  std::size_t count = 0;
  const auto part = data.first(std::min<std::size_t>(data.size(), 16 * 1024));
  const Needs needs =
      attempt([&] { return SSL_write_ex(ssl_.get(), part.data(), part.size(), &count); }, failure);
  if (needs == Needs::failure) return {.error = failure};
  if (needs != Needs::nothing) return {.error = std::make_error_code(std::errc::protocol_error)};
  // The bytes are accepted: the stream must deliver them now, and the caller must not write them
  // again even if the wait ends early.
  const std::error_code error = flush(until);
  if (error && !is_early_end(error)) return {.error = error};
  return {.value = count};
}

std::error_code StreamState::shutdown(const Until& until) {
  std::error_code failure;
  const Needs needs = attempt(
      [&] {
        // A second call would make OpenSSL look for the peer's alert, and fail on data that
        // precedes it.
        const bool is_sent = (SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) != 0;
        // 0 means that the peer's alert has not arrived yet.
        return is_sent || SSL_shutdown(ssl_.get()) >= 0 ? 1 : -1;
      },
      failure);
  if (needs == Needs::failure) return failure;
  return flush(until);
}

// The lock is needed because a reader that receives a ticket replaces the session and its
// certificate.
net::TlsInfo StreamState::info() const {
  const detail::Guard guard(ssl_mutex_);
  return describe(*ssl_);
}

Stream::Stream() noexcept = default;
Stream::Stream(Stream&& other) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept = default;
Stream::~Stream() = default;
Stream::Stream(std::unique_ptr<StreamState> state) noexcept : state_(std::move(state)) {}

net::Result<std::size_t> Stream::read_some(std::span<std::byte> buffer, const Until& until) {
  if (state_ == nullptr) return {.error = weft::Errc::closed};
  return state_->read_some(buffer, until);
}

bool Stream::has_read_ahead() const noexcept { return state_ && state_->has_read_ahead(); }

net::Result<std::size_t> Stream::read_exactly(std::span<std::byte> buffer, const Until& until) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const auto [count, error] = read_some(buffer.subspan(done), until);
    if (error) return {.value = done, .error = error};
    done += count;
  }
  return {.value = done};
}

net::Result<std::size_t> Stream::write_some(std::span<const std::byte> data, const Until& until) {
  if (state_ == nullptr) return {.error = weft::Errc::closed};
  return state_->write_some(data, until);
}

net::Result<std::size_t> Stream::write_all(std::span<const std::byte> data, const Until& until) {
  std::size_t done = 0;
  while (done < data.size()) {
    const auto [count, error] = write_some(data.subspan(done), until);
    if (error) return {.value = done, .error = error};
    done += count;
  }
  // The last bytes must have reached the kernel, not only the stream's buffer.
  const auto [none, error] = write_some({}, until);
  return {.value = done, .error = error};
}

void Stream::set_read_deadline(Deadline deadline) noexcept {
  state_->tcp().set_read_deadline(deadline);
}
void Stream::set_write_deadline(Deadline deadline) noexcept {
  state_->tcp().set_write_deadline(deadline);
}

net::Result<void> Stream::shutdown(const Until& until) {
  if (state_ == nullptr) return weft::Errc::closed;
  return state_->shutdown(until);
}

void Stream::close() noexcept {
  if (state_ != nullptr) state_->tcp().close();
}

net::TcpStream& Stream::tcp() noexcept { return state_->tcp(); }

std::string Stream::alpn() const {
  const unsigned char* chosen = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(state_->ssl(), &chosen, &size);
  return {reinterpret_cast<const char*>(chosen), size};
}

std::string Stream::version() const { return SSL_get_version(state_->ssl()); }

bool Stream::resumed() const noexcept { return SSL_session_reused(state_->ssl()) == 1; }

std::string Stream::peer_subject() const {
  net::TlsInfo all = info();
  return all.peer ? std::move(all.peer->subject) : std::string();
}

net::TlsInfo Stream::info() const { return state_->info(); }

}  // namespace weft::tls
