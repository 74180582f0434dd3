// This file is part of each test program in the copy that tools/lab/mutants/schemata.py makes. It
// records the faults that each case reaches, and the duration of the case.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/mutant.hpp"

namespace {

using weft_mutant::kMost;

class Listener : public doctest::IReporter {
 public:
  explicit Listener(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& /*query*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_start(const doctest::TestCaseData& data) override {
    name_ = data.m_name;
    if (weft_mutant::reached != nullptr) std::memset(weft_mutant::reached, 0, kMost);
  }
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (weft_mutant::reached == nullptr) return;
    std::ofstream file(std::string(std::getenv("WEFT_MUTANTS_REACHED")) + ".cases", std::ios::app);
    file << name_ << '\t' << stats.seconds << '\t';
    for (unsigned i = 1; i < kMost; ++i) {
      if (weft_mutant::reached[i] != 0) file << i << ' ';
    }
    file << '\n';
  }
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*signature*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}

 private:
  std::string name_;
};

REGISTER_LISTENER("mutants", 1, Listener);

}  // namespace
