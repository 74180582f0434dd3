// Generates new certificates for each run of the tests.
#pragma once

#include <string>

namespace weft::test {

// Makes a folder with PEM files of an authority and its certificates. The destructor removes the
// folder.
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
  // Makes a certificate for one host, or for several separated by commas, with the subject `host`.
  // Replaces the files of `name`.
  void make(const std::string& name, const std::string& host) const;
  // Makes a certificate for any subject; if `host` is empty, one without an alternative name.
  void make(const std::string& name, const std::string& subject, const std::string& host) const;
  // Encrypts the key of `name` with a password.
  void encrypt_key(const std::string& name) const;

 private:
  std::string folder_;
  void* authority_ = nullptr;
  void* authority_key_ = nullptr;
};

}  // namespace weft::test
