#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bind.h"
#include "io/checksum.h"
#include "io/parse_error.h"
#include "io/row_writer.h"
#include "io/svmlight_parser.h"
#include "io/xmc_parser.h"

namespace sapwood::bindings {

using namespace nb::literals;
using namespace sapwood::io;

namespace {

template <class T>
std::span<const T> view(const Array<T>& array) {
  return {array.data(), array.shape(0)};
}

nb::tuple to_python(FeatureRows&& rows) {
  return nb::make_tuple(to_numpy(std::move(rows.values)), to_numpy(std::move(rows.indices)),
                        to_numpy(std::move(rows.indptr)));
}

nb::tuple to_python(LabelRows&& rows) {
  return nb::make_tuple(to_numpy(std::move(rows.indices)), to_numpy(std::move(rows.indptr)));
}

template <class Parser>
void feed(Parser& parser, const nb::bytes& block) {
  const std::string_view text(block.c_str(), block.size());
  const nb::gil_scoped_release unlocked;
  parser.feed(text);
}

template <class Parser>
auto finish(Parser& parser) {
  const nb::gil_scoped_release unlocked;
  return parser.finish();
}

template <class Parser>
nb::tuple position(const Parser& parser) {
  return nb::make_tuple(parser.position().line, parser.position().column);
}

IndexBase index_base(std::optional<bool> zero_based) {
  if (!zero_based) return IndexBase::automatic;
  return *zero_based ? IndexBase::zero : IndexBase::one;
}

FeatureView feature_view(const Array<float>& values, const Array<std::int32_t>& indices,
                         const Array<std::int64_t>& indptr) {
  if (indptr.shape(0) == 0) throw nb::value_error("indptr is empty");
  return {view(values), view(indices), view(indptr)};
}

template <class Labels>
nb::tuple write_block(const Labels& labels, const FeatureView& features, std::int64_t row, std::int64_t base) {
  std::string text;
  {
    const nb::gil_scoped_release unlocked;
    row = write_rows(text, labels, features, row, base);
  }
  return nb::make_tuple(nb::bytes(text.data(), text.size()), row);
}

/// A ParseError arrives in Python with the arguments (line, column, message).
void bind_parse_error(nb::module_& m) {
  const nb::object type = nb::steal(PyErr_NewException("sapwood._core.ParseError", PyExc_ValueError, nullptr));
  m.attr("ParseError") = type;
  nb::register_exception_translator(
      [](const std::exception_ptr& error, void* type) {
        try {
          std::rethrow_exception(error);
        } catch (const ParseError& e) {
          const nb::tuple arguments = nb::make_tuple(e.line(), e.column(), e.what());
          PyErr_SetObject(static_cast<PyObject*>(type), arguments.ptr());
        }
      },
      type.ptr());
}

void bind_parsers(nb::module_& m) {
  nb::class_<SvmlightParser>(m, "SvmlightParser")
      .def(
          "__init__",
          [](SvmlightParser* self, std::optional<std::int64_t> n_features, std::optional<bool> zero_based,
             bool multilabel) { new (self) SvmlightParser({index_base(zero_based), n_features, multilabel}); },
          nb::kw_only(), "n_features"_a.none(), "zero_based"_a.none(), "multilabel"_a)
      .def("feed", &feed<SvmlightParser>, "block"_a)
      .def("position", &position<SvmlightParser>)
      .def("finish", [](SvmlightParser& parser) {
        SvmlightData data = finish(parser);
        return nb::make_tuple(to_python(std::move(data.features)), to_numpy(std::move(data.targets)),
                              to_python(std::move(data.labels)), data.n_features, data.n_labels);
      });
  nb::class_<XmcParser>(m, "XmcParser")
      .def(nb::init<>())
      .def("feed", &feed<XmcParser>, "block"_a)
      .def("position", &position<XmcParser>)
      .def("finish", [](XmcParser& parser) {
        XmcData data = finish(parser);
        return nb::make_tuple(to_python(std::move(data.features)), to_python(std::move(data.labels)),
                              data.n_features, data.n_labels);
      });
}

void bind_writers(nb::module_& m) {
  m.def(
      "write_target_rows",
      [](const Array<double>& targets, const Array<float>& values, const Array<std::int32_t>& indices,
         const Array<std::int64_t>& indptr, std::int64_t row, std::int64_t base) {
        return write_block(view(targets), feature_view(values, indices, indptr), row, base);
      },
      "targets"_a, "values"_a, "indices"_a, "indptr"_a, nb::kw_only(), "row"_a, "base"_a);
  m.def(
      "write_label_rows",
      [](const Array<std::int32_t>& label_indices, const Array<std::int64_t>& label_indptr,
         const Array<float>& values, const Array<std::int32_t>& indices,
         const Array<std::int64_t>& indptr, std::int64_t row, std::int64_t base) {
        const LabelView labels{view(label_indices), view(label_indptr)};
        return write_block(labels, feature_view(values, indices, indptr), row, base);
      },
      "label_indices"_a, "label_indptr"_a, "values"_a, "indices"_a, "indptr"_a, nb::kw_only(), "row"_a, "base"_a);
}

void bind_checksum(nb::module_& m) {
  m.def(
      "checksum",
      [](const Array<std::uint8_t>& data) {
        const nb::gil_scoped_release no_gil;
        return checksum(std::as_bytes(std::span(data.data(), data.shape(0))));
      },
      "data"_a);
}

}  // namespace

void bind_io(nb::module_& m) {
  bind_checksum(m);
  bind_parse_error(m);
  bind_parsers(m);
  bind_writers(m);
}

}  // namespace sapwood::bindings
