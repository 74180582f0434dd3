// Certificates for tests, made anew each time.
#pragma once

#include <string>

namespace weft::test {

// A folder with PEM files: an authority, and certificates by it. The destructor removes them.
class Certificates {
 public:
  Certificates();
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  [[nodiscard]] std::string authority() const { return folder_ + "/authority.pem"; }
  [[nodiscard]] std::string certificate(const std::string& name) const {
    return folder_ + "/" + name + ".pem";
  }
  [[nodiscard]] std::string key(const std::string& name) const {
    return folder_ + "/" + name + ".key";
  }
  // For the host, or hosts with commas between, and the subject `host`, in the files of `name`,
  // replacing what is there.
  void make(const std::string& name, const std::string& host) const;
  // With a subject of its own; an empty host: the certificate has no alternative name.
  void make(const std::string& name, const std::string& subject, const std::string& host) const;
  // The key of `name` becomes one that needs a password.
  void encrypt_key(const std::string& name) const;

 private:
  std::string folder_;
  void* authority_ = nullptr;
  void* authority_key_ = nullptr;
};

}  // namespace weft::test
