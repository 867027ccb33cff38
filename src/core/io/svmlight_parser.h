#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/line_reader.h"
#include "io/rows.h"

namespace sapwood::io {

/// What the first feature is called in the file. Automatic: zero if a feature 0 occurs, else one.
enum class IndexBase { zero, one, automatic };

struct SvmlightOptions {
  IndexBase base = IndexBase::automatic;
  std::optional<std::int64_t> n_features;  // what the indices need, if not given
  bool multilabel = false;
};

struct SvmlightData {
  FeatureRows features;
  std::vector<double> targets;  // without multilabel
  LabelRows labels;             // with multilabel
  std::int64_t n_features = 0;
  std::int64_t n_labels = 0;
};

/// Reads `label[,label...] [qid:id] index:value ... [# comment]`, fed block by block.
class SvmlightParser {
 public:
  explicit SvmlightParser(SvmlightOptions options);

  void feed(std::string_view block);
  [[nodiscard]] SvmlightData finish();
  [[nodiscard]] Position position() const noexcept { return lines_.position(); }

 private:
  void read_row(Line& line);
  void read_target(Line& line);
  void check_range(const Line& line);
  [[nodiscard]] IndexBase settled_base() const;

  SvmlightOptions options_;
  LineReader lines_{'#'};
  SvmlightData data_;
  std::int64_t lowest_ = max_index;
  std::int64_t highest_ = -1;
  std::optional<Position> needs_base_one_;  // the first index that equals n_features
};

}  // namespace sapwood::io
